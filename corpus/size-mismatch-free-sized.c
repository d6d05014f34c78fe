// finds: size-mismatch
// sizes: 24 3000 400000
// words: allocated as %SIZE%
// asan: blind to the functions of C23
// C23's free_sized, where the library has it; the C library of today has not.
#include "corpus.h"
#include <dlfcn.h>

int main(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    char *p = malloc(SIZE);
    POKE(p, 1);
    if (free_sized)
        free_sized(hide(p), SIZE BUG(+ 1));
    else
        free(p);
    return 0;
}
