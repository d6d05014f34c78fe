// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Never freed: found when the program ends.
#include "corpus.h"

char *kept;

int main(void)
{
    kept = malloc(SIZE);
    POKE(kept BUG(- 1), 1);
    return 0;
}
