// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main()
{
    char *p = static_cast<char *>(malloc(SIZE));
    BUG(delete[] hide(p);)
    FIX(free(hide(p));)
    return 0;
}
