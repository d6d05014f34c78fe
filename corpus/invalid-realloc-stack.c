// finds: invalid-realloc
// words: stack
// A buffer on the stack, until it is too small.
#include "corpus.h"

int main(void)
{
    char local[64] = "short", *p = local;
    FIX(p = malloc(64);)
    char *q = realloc(hide(p), 128);
    FIX(free(hide(q));)
    (void)hide(q);
    (void)hide(local);
    return 0;
}
