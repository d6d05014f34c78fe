// finds: alignment-mismatch
// sizes: 64 4096 1048576
// words: %SIZE%-byte
#include "corpus.h"
#include <new>

int main()
{
    char *p = static_cast<char *>(::operator new(SIZE, std::align_val_t(64)));
    ::operator delete(hide(p), SIZE, std::align_val_t(64 BUG(/ 2)));
    return 0;
}
