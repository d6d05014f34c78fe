// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main()
{
    char *p = new char[SIZE];
    BUG(free(hide(p));)
    FIX(delete[] hide(p);)
    return 0;
}
