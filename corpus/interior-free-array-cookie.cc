// finds: interior-free
// words: 8 bytes into an 88-byte
// An array of objects with destructors starts with their number: delete
// instead of delete[] frees the first object, behind it.
#include "corpus.h"

struct Item { long id; ~Item() { hide(this); } };

int main()
{
    Item *items = new Item[10];
    BUG(delete hide(items);)
    FIX(delete[] hide(items);)
    return 0;
}
