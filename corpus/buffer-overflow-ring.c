// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A ring that wraps one place too late.
#include "corpus.h"

int main(void)
{
    char *ring = malloc(SIZE);
    size_t head = 0;
    for (size_t i = 0; i < SIZE + 10; i++) {
        POKE(ring + head, i);
        head = head FIX(+ 1) == SIZE ? 0 : head + 1;
    }
    free(hide(ring));
    return 0;
}
