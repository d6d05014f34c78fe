// finds: allocator-mismatch
// sizes: 24 3000 400000
// words: %SIZE%-byte
// unique_ptr<char> calls delete; unique_ptr<char[]> would call delete[].
#include "corpus.h"
#include <memory>

int main()
{
    std::unique_ptr<char FIX([])> p(hide(new char[SIZE]));
    return 0;
}
