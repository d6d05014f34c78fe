// finds: use-after-free
// words: 48-byte
// needs: guard=all
// The table of virtual functions is read from an object that is gone. (It is
// only read here: a call would go to whatever is there now.)
#include "corpus.h"

struct Shape {
    virtual ~Shape() {}
    char bytes[40];
};

int main()
{
    Shape *s = new Shape;
    BUG(delete hide(s);)
    hide(*reinterpret_cast<char *volatile *>(hide(s)));
    FIX(delete hide(s);)
    return 0;
}
