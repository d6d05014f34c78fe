// finds: double-free
// sizes: 24 3000
// stack: callback
// A callback gives up by longjmp after it has freed its argument; who called
// it frees it on the way out.
#include "corpus.h"
#include <setjmp.h>

static jmp_buf out;

NOINLINE void callback(char *p)
{
    BUG(free(hide(p));)
    (void)hide(p);
    longjmp(out, 1);
}

int main(void)
{
    char *volatile p = malloc(SIZE);
    if (setjmp(out) == 0)
        callback(p);
    free(hide(p));
    return 0;
}
