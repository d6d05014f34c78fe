// finds: size-mismatch
// sizes: 24 3000 400000
// words: allocated as %SIZE%
#include "corpus.h"
#include <new>

int main()
{
    char *p = static_cast<char *>(::operator new(SIZE));
    ::operator delete(hide(p), SIZE BUG(- 1));
    return 0;
}
