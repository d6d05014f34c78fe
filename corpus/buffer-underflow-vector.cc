// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The element before begin(): back() of an empty range.
#include "corpus.h"
#include <vector>

int main()
{
    std::vector<int> v(SIZE / 4);
    int *end = v.data() FIX(+ 1);
    const_cast<volatile int *>(hide(end))[-1] = 42;
    return 0;
}
