// finds: allocator-mismatch
// sizes: 24 3000
// words: %SIZE%-byte
#include "corpus.h"
#include <memory>

int main()
{
    std::shared_ptr<char> p(hide(new char[SIZE]) FIX(, std::default_delete<char[]>()));
    return 0;
}
