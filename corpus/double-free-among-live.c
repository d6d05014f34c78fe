// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Its neighbours on both sides are alive.
#include "corpus.h"

int main(void)
{
    char *p[64];
    for (int i = 0; i < 64; i++)
        p[i] = malloc(SIZE);
    free(p[31]);
    BUG(free(hide(p[31]));)
    for (int i = 0; i < 64; i++)
        if (i != 31)
            free(p[i]);
    return 0;
}
