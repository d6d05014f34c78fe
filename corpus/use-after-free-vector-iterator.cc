// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// An iterator from before the growth.
#include "corpus.h"
#include <vector>

int main()
{
    std::vector<int> v(SIZE / 4, 7);
    auto at = v.begin();
    v.push_back(8);
    FIX(at = v.begin();)
    PEEK(hide(&*at));
    return 0;
}
