// finds: buffer-underflow
// words: 16-byte
// The newline is cut off an empty line: text[strlen(text) - 1].
#include "corpus.h"

int main(void)
{
    char *text = calloc(1, 16);
    size_t n = strlen(hide(text));
    FIX(if (n > 0))
        POKE(text + n - 1, 1);
    free(hide(text));
    return 0;
}
