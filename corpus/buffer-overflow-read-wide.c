// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// asan: blind to accesses that are not aligned
// Eight bytes at a time: the last step reads four that are not there.
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE);
    uint64_t last = *(volatile uint64_t *)(p + SIZE - 8 BUG(+ 4));
    free(hide(p));
    return last != 0;
}
