// leaks: definite 1 SIZE at A in serve
// sizes: 24 3000 400000
// A forked child loses a block; its parent does not have that block at all.
#include "corpus.h"
#include <sys/wait.h>

NOINLINE void serve(void)
{
    char *request = malloc(SIZE); // LEAK A
    POKE(request, 1);
    FIX(free(request);)
}

int main(void)
{
    if (fork() == 0) {
        serve();
        wipe();
        exit(0);
    }
    wait(NULL);
    return 0;
}
