// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *from = calloc(1, SIZE + 8), *to = malloc(SIZE);
    memset(from, 'x', SIZE + 8);
    memcpy(hide(to), hide(from), SIZE BUG(+ 1));
    free(hide(to));
    free(hide(from));
    return 0;
}
