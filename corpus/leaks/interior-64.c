// leaks: reachable 1 SIZE at A in main
// sizes: 100 3000 400000
// valgrind: differs It calls a block possibly lost that only a pointer behind its start leads to.
// The last byte that still counts as the start of a block: its 64th behind the first.
#include "corpus.h"

char *aligned;

int main(void)
{
    char *p = calloc(1, SIZE); // LEAK A
    aligned = p + 64;
    FIX(free(p); aligned = NULL;)
    p = hide(NULL);
    wipe();
    return 0;
}
