// finds: buffer-underflow
// words: 1024-byte
// A byte above 127 as an index, where char has a sign.
#include "corpus.h"

int main(void)
{
    int *counts = calloc(256, sizeof *counts);
    const char *text = hide("caf\xff");
    for (const char *t = text; *t; t++)
        ((volatile int *)hide(counts))[BUG((signed char)) FIX((unsigned char)) *t]++;
    free(hide(counts));
    return 0;
}
