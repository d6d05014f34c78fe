// finds: allocator-mismatch
// sizes: 64 4096 1048576
// words: %SIZE%-byte
#include "corpus.h"
#include <new>

int main()
{
    auto align = std::align_val_t(64);
    char *p = static_cast<char *>(::operator new(SIZE, align));
    BUG(free(hide(p));)
    FIX(::operator delete(hide(p), align);)
    return 0;
}
