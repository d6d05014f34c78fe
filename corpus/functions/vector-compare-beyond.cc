// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by memcmp of
// needs: bounds
// A vector is compared by the other one's size.
#include "../corpus.h"
#include <vector>

int main(void)
{
    std::vector<char> one(SIZE, 'a'), other(SIZE, 'a');
    BUG(other.push_back('a');)
    if (memcmp(hide(one.data()), other.data(), other.size()) == 7)
        return 1;
    return 0;
}
