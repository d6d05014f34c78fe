// finds: double-free
// words: 56-byte
// After main, two globals free the same thing.
#include "corpus.h"

struct Thing { char bytes[56]; };
struct Owner {
    Thing *thing;
    ~Owner() { delete hide(thing); }
};
Owner first, second;

int main()
{
    first.thing = new Thing;
    second.thing = BUG(first.thing) FIX(new Thing);
    return 0;
}
