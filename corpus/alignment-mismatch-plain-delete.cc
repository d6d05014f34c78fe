// finds: alignment-mismatch
// sizes: 64 4096 1048576
// words: %SIZE%-byte
// An over-aligned object is deleted as if it were a plain one.
#include "corpus.h"
#include <new>

int main()
{
    char *p = static_cast<char *>(::operator new(SIZE, std::align_val_t(256)));
    ::operator delete(hide(p), SIZE FIX(, std::align_val_t(256)));
    return 0;
}
