// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// An exit handler writes last words to what main has freed.
#include "corpus.h"

static char *state;

static void at_exit(void)
{
    POKE(state, 9);
}

int main(void)
{
    state = malloc(SIZE);
    atexit(at_exit);
    BUG(free(hide(state));)
    return 0;
}
