// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// stack: at_exit
#include "corpus.h"

static char *buffer;

NOINLINE void at_exit(void)
{
    free(hide(buffer));
}

int main(void)
{
    atexit(at_exit);
    buffer = malloc(SIZE);
    BUG(free(hide(buffer));)
    return 0;
}
