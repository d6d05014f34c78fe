// finds: buffer-overflow
// words: 125-byte
// One bit too far: bit 1000 of 1000.
#include "corpus.h"

int main(void)
{
    unsigned char *bits = calloc(1000 / 8, 1);
    for (int i = 0; i < 1000 BUG(+ 1); i += 8)
        ((volatile unsigned char *)hide(bits))[i / 8] |= 1;
    free(hide(bits));
    return 0;
}
