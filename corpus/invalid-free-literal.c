// finds: invalid-free
// words: invalid-free-literal
// The default value of an option is a literal, its other values are copies.
#include "corpus.h"

int main(void)
{
    const char *value = "default";
    FIX(value = strdup(value);)
    free(hide(value));
    return 0;
}
