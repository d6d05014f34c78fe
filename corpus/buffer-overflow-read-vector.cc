// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// A loop with <= instead of <.
#include "corpus.h"
#include <vector>

int main()
{
    std::vector<int> v(SIZE / 4, 1);
    const volatile int *data = hide(v.data());
    long sum = 0;
    for (size_t i = 0; i BUG(<=) FIX(<) v.size(); i++)
        sum += data[i];
    return sum == 0;
}
