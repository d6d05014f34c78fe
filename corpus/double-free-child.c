// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// In a forked child, of a block that the parent freed before.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = malloc(SIZE);
    free(hide(p));
    if (fork() == 0) {
        BUG(free(hide(p));)
        exit(0);
    }
    wait(NULL);
    return 0;
}
