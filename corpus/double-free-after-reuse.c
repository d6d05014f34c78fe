// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The C library would give q the memory of p, and the second free of p would
// free q behind its owner's back.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    free(p);
    char *q = malloc(SIZE);
    memset(q, 'q', SIZE);
    BUG(free(hide(p));)
    CHECK(q[SIZE - 1] == 'q');
    free(q);
    return 0;
}
