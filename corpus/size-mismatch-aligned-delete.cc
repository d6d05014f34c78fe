// finds: size-mismatch
// sizes: 64 4096 1048576
// words: allocated as %SIZE%
#include "corpus.h"
#include <new>

int main()
{
    auto align = std::align_val_t(64);
    char *p = static_cast<char *>(::operator new(SIZE, align));
    ::operator delete(hide(p), SIZE BUG(- 16), align);
    return 0;
}
