// finds: buffer-overflow
// sizes: 32 3008
// words: %SIZE%-byte
// needs: guard=all
// Compared with a longer block, by the longer's length.
#include "corpus.h"

int main(void)
{
    char *a = calloc(1, SIZE), *b = calloc(1, SIZE + 4096);
    volatile int order = memcmp(hide(a), hide(b), SIZE BUG(+ 4096));
    (void)order;
    free(a);
    free(b);
    return 0;
}
