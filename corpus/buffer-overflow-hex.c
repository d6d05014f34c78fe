// finds: buffer-overflow
// words: 32-byte
// Hexadecimal digits need two bytes each, and the NUL one more.
#include "corpus.h"

int main(void)
{
    unsigned char digest[16] = { 0xde, 0xad };
    char *hex = malloc(sizeof digest * 2 FIX(+ 1));
    for (size_t i = 0; i < sizeof digest; i++)
        sprintf((char *)hide(hex) + 2 * i, "%02x", digest[i]);
    free(hide(hex));
    return 0;
}
