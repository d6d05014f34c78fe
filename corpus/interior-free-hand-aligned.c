// finds: interior-free
// sizes: 100 3000 400000
// The program aligned the pointer by hand and forgot the original.
#include "corpus.h"

int main(void)
{
    char *raw = malloc(SIZE + 256);
    char *aligned = (char *)(((uintptr_t)raw + 256) & ~(uintptr_t)255);
    aligned[0] = 1;
    BUG(free(hide(aligned));)
    free(hide(raw));
    return 0;
}
