// finds: size-mismatch
// sizes: 24 3000 400000
// asan: blind to the functions of C23
// The size before the block grew.
#include "corpus.h"
#include <dlfcn.h>

int main(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    char *p = malloc(SIZE);
    size_t size = SIZE;
    p = realloc(p, SIZE * 2);
    FIX(size *= 2;)
    if (free_sized)
        free_sized(hide(p), size);
    else
        free(p);
    return 0;
}
