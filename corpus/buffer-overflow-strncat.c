// finds: buffer-overflow
// sizes: 24 3000
// words: %SIZE%-byte
// strncat's bound is what it may append, and the NUL comes on top of it.
#include "corpus.h"

int main(void)
{
    char *text = calloc(1, SIZE + 1), *to = malloc(SIZE);
    memset(text, 'y', SIZE);
    strcpy(hide(to), "0123");
    strncat(hide(to), hide(text), SIZE - 4 FIX(- 1));
    free(hide(to));
    free(text);
    return 0;
}
