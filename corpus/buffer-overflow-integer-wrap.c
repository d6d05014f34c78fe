// finds: buffer-overflow
// words: 40-byte
// The number of bytes wraps around in 32 bits: 2^30 + 10 elements of 4 bytes.
#include "corpus.h"

int main(void)
{
    volatile uint32_t count = BUG((1u << 30) +) 10;
    uint32_t bytes = count * (uint32_t)sizeof(int);
    int *a = malloc(bytes);
    for (uint32_t i = 0; i < count && i < 12; i++)
        ((volatile int *)hide(a))[i] = 1;
    free(hide(a));
    return 0;
}
