// finds: use-after-free
// words: 64-byte
// needs: guard=all
// stack: describe
// A function returns a text that it has freed.
#include "corpus.h"

NOINLINE const char *describe(int code, char **owner)
{
    char *text = malloc(64);
    snprintf(text, 64, "error %d", code);
    BUG(free(hide(text));)
    *owner = text;
    return hide(text);
}

int main(void)
{
    char *owner;
    const char *text = describe(7, &owner);
    PEEK(text);
    FIX(free(owner);)
    return 0;
}
