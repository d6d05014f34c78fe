// finds: size-mismatch
// words: allocated as 4000
// asan: blind to the functions of C23
// The number of elements, where their size in bytes is wanted.
#include "corpus.h"
#include <dlfcn.h>

int main(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    int *p = calloc(1000, sizeof *p);
    if (free_sized)
        free_sized(hide(p), 1000 FIX(* sizeof *p));
    else
        free(p);
    return 0;
}
