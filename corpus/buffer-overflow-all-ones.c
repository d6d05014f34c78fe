// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The bytes that are written are all ones: -1 in the next element.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(hide(p), 0xff, SIZE BUG(+ 4));
    free(hide(p));
    return 0;
}
