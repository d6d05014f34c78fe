// finds: use-after-free
// sizes: 24 3000 400000
// words: by write of
// needs: bounds
// A buffer goes out after it was freed: the kernel reads it.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    FILE *null = fopen("/dev/null", "w");
    if (write(fileno(null), hide(p), SIZE) < 0)
        return 1;
    fclose(null);
    FIX(free(hide(p));)
    return 0;
}
