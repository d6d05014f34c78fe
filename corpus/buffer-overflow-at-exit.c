// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The block is never freed: found when the program ends.
#include "corpus.h"

char *kept;

int main(void)
{
    kept = malloc(SIZE);
    memset(hide(kept), 'e', SIZE BUG(+ 1));
    return 0;
}
