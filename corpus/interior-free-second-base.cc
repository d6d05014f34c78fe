// finds: interior-free
// words: 32-byte
// Deleted through its second base, whose destructor is not virtual.
#include "corpus.h"

struct Named { char name[16]; };
struct Counted { long count, limit; FIX(virtual ~Counted() {}) };
struct Object : Named, Counted {};

int main()
{
    Counted *c = new Object;
    delete hide(c);
    return 0;
}
