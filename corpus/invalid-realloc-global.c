// finds: invalid-realloc
// words: invalid-realloc-global
#include "corpus.h"

static char first[256];

int main(void)
{
    char *p = first;
    FIX(p = malloc(256);)
    p = realloc(hide(p), 512);
    FIX(free(hide(p));)
    return 0;
}
