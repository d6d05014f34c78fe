// finds: size-mismatch
// sizes: 64 4096 1048576
// words: allocated as %SIZE%
// asan: blind to the functions of C23
#include "corpus.h"
#include <dlfcn.h>

int main(void)
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    char *p = aligned_alloc(64, SIZE);
    POKE(p, 1);
    if (free_aligned_sized)
        free_aligned_sized(hide(p), 64, SIZE BUG(* 2));
    else
        free(p);
    return 0;
}
