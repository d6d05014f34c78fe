// finds: use-after-free
// sizes: 24 3000 400000
// words: by fwrite of
// needs: bounds
// A record is written to a file after it was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    FILE *null = fopen("/dev/null", "w");
    if (fwrite(hide(p), 1, SIZE, null) != SIZE)
        return 1;
    fclose(null);
    FIX(free(hide(p));)
    return 0;
}
