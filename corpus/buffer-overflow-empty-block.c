// finds: buffer-overflow
// words: 0-byte
// asan: blind, it makes one byte of none
// Even one byte is too much for a block of none.
#include "corpus.h"

int main(void)
{
    char *p = malloc(0 FIX(+ 1));
    POKE(p, 1);
    free(hide(p));
    return 0;
}
