// finds: write-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// The program never comes to its exit handlers: the write is found when the
// freed block leaves the quarantine, behind many others.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    free(hide(p));
    BUG(POKE(p + 3, 'x');)
    for (size_t i = 0; i < 100000; i++)
        free(hide(malloc(SIZE)));
    _exit(0);
}
