// finds: invalid-free
// words: invalid-free-bss
// sizes: 24 100000
#include "corpus.h"

static char table[400000];

int main(void)
{
    char *p = table + SIZE / 16 * 16;
    FIX(p = malloc(SIZE);)
    free(hide(p));
    return 0;
}
