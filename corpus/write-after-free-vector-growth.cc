// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A pointer to an element, and a push_back that moves all of them.
#include "corpus.h"
#include <vector>

int main()
{
    std::vector<int> v(SIZE / 4);
    int *first = &v[0];
    v.push_back(1);
    FIX(first = &v[0];)
    *const_cast<volatile int *>(hide(first)) = 42;
    return 0;
}
