// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"
#include <new>

int main()
{
    char *p = static_cast<char *>(malloc(SIZE));
    BUG(::operator delete(hide(p));)
    FIX(free(hide(p));)
    return 0;
}
