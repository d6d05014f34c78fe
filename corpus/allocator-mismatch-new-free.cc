// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"
#include <new>

int main()
{
    char *p = static_cast<char *>(::operator new(SIZE));
    BUG(free(hide(p));)
    FIX(::operator delete(hide(p));)
    return 0;
}
