// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Bytes were allocated for a number of ints.
#include "corpus.h"

int main(void)
{
    int *a = malloc(SIZE FIX(* sizeof *a));
    for (size_t i = 0; i < SIZE && i < SIZE / 4 + 4; i++)
        ((volatile int *)hide(a))[i] = 1;
    free(hide(a));
    return 0;
}
