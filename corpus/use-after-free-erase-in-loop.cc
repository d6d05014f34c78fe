// finds: use-after-free
// words: 48-byte
// needs: guard=all
// asan: blind to what the C++ library itself reads
// erase(at), and then ++at.
#include "corpus.h"
#include <map>

int main()
{
    std::map<long, long> map;
    for (long i = 0; i < 20; i++)
        map[i] = i;
    auto at = map.begin();
    while (at->first != 7)
        ++at;
    auto found = at;
    FIX(++at;)
    map.erase(found);
    BUG(++at;)
    hide(&at);
    return 0;
}
