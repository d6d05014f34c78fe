// leaks: definite 1 SIZE at A in main
// sizes: 24 3000
// valgrind: differs It also looks where a child ends by _exit, and reports the block twice.
// A block is lost, and then a child forked that ends by _exit: it is one leak, not two.
#include "corpus.h"
#include <sys/wait.h>

int main(void)
{
    char *p = malloc(SIZE); // LEAK A
    POKE(p, 1);
    FIX(free(p);)
    p = hide(NULL);
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    return 0;
}
