// finds: buffer-overflow
// sizes: 64 4096 1048576
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = aligned_alloc(64, SIZE);
    memset(hide(p), 'a', SIZE BUG(+ 1));
    free(hide(p));
    return 0;
}
