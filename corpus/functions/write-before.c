// finds: buffer-underflow
// sizes: 24 3000 400000
// words: by write of
// needs: bounds
// What goes out begins before its block.
#include "../corpus.h"

int main(void)
{
    char *q = calloc(SIZE, 1);
    char *p = calloc(SIZE, 1);
    char *from = p;
    BUG(from -= 4;)
    FILE *null = fopen("/dev/null", "w");
    if (write(fileno(null), hide(from), SIZE) < 0)
        return 1;
    fclose(null);
    free(hide(q));
    free(hide(p));
    return 0;
}
