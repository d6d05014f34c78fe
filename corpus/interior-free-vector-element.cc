// finds: interior-free
// words: 40 bytes into a 400-byte
// A vector's element is deleted like an object of its own.
#include "corpus.h"
#include <vector>

struct Item { char bytes[40]; };

int main()
{
    std::vector<Item> items(10);
    Item *found = &items[1];
    BUG(delete hide(found);)
    hide(found);
    return 0;
}
