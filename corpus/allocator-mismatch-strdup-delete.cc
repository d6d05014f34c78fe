// finds: allocator-mismatch
// words: 10-byte
// The C library's copy of a text is malloc's.
#include "corpus.h"

int main()
{
    char *text = strdup("9 letters");
    BUG(delete[] hide(text);)
    FIX(free(hide(text));)
    return 0;
}
