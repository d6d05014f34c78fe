// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by fwrite of
// needs: bounds
// One byte more than there is is written to a file.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    FILE *null = fopen("/dev/null", "w");
    if (fwrite(hide(p), 1, n, null) != n)
        return 1;
    fclose(null);
    free(hide(p));
    return 0;
}
