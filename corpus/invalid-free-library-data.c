// finds: invalid-free
// words: libc
// The C library's own data: stdout was never allocated.
#include "corpus.h"

int main(void)
{
    void *p = stdout;
    FIX(p = malloc(sizeof *stdout);)
    free(hide(p));
    return 0;
}
