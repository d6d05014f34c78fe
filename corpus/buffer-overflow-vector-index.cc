// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// v[v.size()] of a full vector.
#include "corpus.h"
#include <vector>

int main()
{
    std::vector<int> v(SIZE / 4, 1);
    int *data = hide(v.data());
    const_cast<volatile int *>(data)[v.size() FIX(- 1)] = 42;
    return 0;
}
