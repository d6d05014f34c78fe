// finds: buffer-overflow
// sizes: 24 3000 400001
// words: by getdelim of
// asan: blind the line is shorter
// A line is read into a block that is said to be larger than it is.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    char *line = (char *)hide(p);
    FILE *lines = tmpfile();
    fputs("a line\n", lines);
    rewind(lines);
    if (getline(&line, &n, lines) < 0)
        return 1;
    fclose(lines);
    free(hide(p));
    return 0;
}
