// finds: buffer-overflow
// sizes: 40 4000
// words: %SIZE%-byte
// One element too many is sorted: the last one changes places with what lies
// behind the block.
#include "corpus.h"

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    size_t n = SIZE / sizeof(unsigned);
    unsigned *a = malloc(SIZE);
    memset(a, 0xff, SIZE);
    qsort(hide(a), n BUG(+ 1), sizeof *a, compare);
    free(hide(a));
    return 0;
}
