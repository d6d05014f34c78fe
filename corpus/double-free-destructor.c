// finds: double-free
// sizes: 24 3000
// stack: unload
// In a function that the linker runs after main and the exit handlers.
#include "corpus.h"

static char *buffer;

NOINLINE __attribute__((destructor)) void unload(void)
{
    free(hide(buffer));
}

int main(void)
{
    buffer = malloc(SIZE);
    BUG(free(hide(buffer));)
    return 0;
}
