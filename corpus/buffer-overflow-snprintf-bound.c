// finds: buffer-overflow
// sizes: 24 3000
// words: %SIZE%-byte
// The bound is that of another buffer.
#include "corpus.h"

int main(void)
{
    char *text = calloc(1, SIZE + 1), *to = malloc(SIZE);
    memset(text, 'z', SIZE);
    snprintf(hide(to), SIZE BUG(+ 4), "%s", text);
    free(hide(to));
    free(text);
    return 0;
}
