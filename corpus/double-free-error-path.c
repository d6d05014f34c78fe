// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// stack: load
// The clean-up at the end runs after an error that has cleaned up.
#include "corpus.h"

NOINLINE int load(int bad_header)
{
    int result = -1;
    char *p = malloc(SIZE);
    p[0] = 0;
    if (bad_header) {
        BUG(free(hide(p));)
        goto done;
    }
    result = 0;
done:
    free(hide(p));
    return result;
}

int main(void)
{
    return load(0) == 0 && load(1) == -1 ? 0 : 1;
}
