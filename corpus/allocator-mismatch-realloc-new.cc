// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A block of new cannot grow.
#include "corpus.h"

int main()
{
    char *p = BUG(new char[SIZE]) FIX(static_cast<char *>(malloc(SIZE)));
    p = static_cast<char *>(realloc(hide(p), SIZE * 2));
    free(hide(p));
    return 0;
}
