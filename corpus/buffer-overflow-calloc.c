// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    int *a = calloc(SIZE / 4, 4);
    volatile int *end = hide(a + SIZE / 4);
    end[-1] = 1;
    BUG(end[0] = 1;)
    free(hide(a));
    return 0;
}
