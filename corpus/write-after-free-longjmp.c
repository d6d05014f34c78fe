// finds: write-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// A parser gives up and frees its state; after the longjmp the state is marked.
#include "corpus.h"
#include <setjmp.h>

static jmp_buf out;

NOINLINE void gives_up(char *p)
{
    BUG(free(hide(p));)
    (void)hide(p);
    longjmp(out, 1);
}

int main(void)
{
    char *volatile p = malloc(SIZE);
    if (setjmp(out) == 0)
        gives_up(p);
    POKE(p, 'e');
    FIX(free(p);)
    return 0;
}
