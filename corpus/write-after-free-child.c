// finds: write-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// The child goes on with a block that its parent freed before the fork.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = malloc(SIZE);
    BUG(free(hide(p));)
    if (fork() == 0) {
        POKE(p, 1);
        exit(0);
    }
    wait(NULL);
    FIX(free(hide(p));)
    return 0;
}
