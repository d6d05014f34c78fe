// finds: size-mismatch
// sizes: 24 3000 400000
// words: allocated as %SIZE%
// std::allocator gets back another number of elements than it gave.
#include "corpus.h"
#include <memory>

int main()
{
    std::allocator<int> allocator;
    int *p = allocator.allocate(SIZE / 4);
    allocator.deallocate(hide(p), SIZE / 4 BUG(+ 1));
    return 0;
}
