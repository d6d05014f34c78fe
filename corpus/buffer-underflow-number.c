// finds: buffer-underflow
// words: 10-byte
// Digits are written from the right; there is one more than there is room for.
#include "corpus.h"

int main(void)
{
    char *text = malloc(10), *at = text + 10;
    volatile unsigned long n = 1234567890 BUG(* 10ul);
    do {
        POKE(--at, '0' + n % 10);
        n /= 10;
    } while (n);
    free(hide(text));
    return 0;
}
