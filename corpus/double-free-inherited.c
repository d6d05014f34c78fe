// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// A child may free its copy of its parent's block; once.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = malloc(SIZE);
    if (fork() == 0) {
        free(hide(p));
        BUG(free(hide(p));)
        exit(0);
    }
    wait(NULL);
    free(p);
    return 0;
}
