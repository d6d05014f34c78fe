// finds: double-free
// words: 40-byte
// One pointer was pushed twice.
#include "corpus.h"
#include <vector>

struct Item { char bytes[40]; };

int main()
{
    std::vector<Item *> all;
    for (int i = 0; i < 10; i++)
        all.push_back(new Item);
    BUG(all.push_back(all[4]);)
    for (Item *item : all)
        delete hide(item);
    return 0;
}
