// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A longer range is copied to a vector's begin, and not inserted.
#include "corpus.h"
#include <algorithm>
#include <vector>

int main()
{
    std::vector<char> from(SIZE BUG(+ 2), 'f'), to(SIZE);
    std::copy(from.begin(), from.end(), hide(&to[0]));
    hide(&to[0]);
    return 0;
}
