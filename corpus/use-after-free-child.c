// finds: use-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// needs: guard=all
// In a forked child.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = calloc(1, SIZE);
    BUG(free(hide(p));)
    if (fork() == 0) {
        PEEK(p);
        exit(0);
    }
    wait(NULL);
    FIX(free(hide(p));)
    return 0;
}
