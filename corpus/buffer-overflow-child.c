// finds: buffer-overflow
// sizes: 24 3000
// words: %SIZE%-byte
// A forked child spoils its copy of a block, and ends.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = malloc(SIZE);
    if (fork() == 0) {
        memset(hide(p), 'c', SIZE BUG(+ 1));
        free(hide(p));
        exit(0);
    }
    wait(NULL);
    free(p);
    return 0;
}
