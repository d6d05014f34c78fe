// finds: invalid-free
// words: stack
// sizes: 24 3000
#include "corpus.h"
#include <alloca.h>

int main(void)
{
    char *p = alloca(SIZE);
    FIX(p = malloc(SIZE);)
    free(hide(p));
    return 0;
}
