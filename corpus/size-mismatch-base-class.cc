// finds: size-mismatch
// words: allocated as 48
// A derived object is deleted as its base, whose destructor is not virtual.
#include "corpus.h"

struct Shape { long kind; FIX(virtual ~Shape() {}) };
struct Polygon : Shape { long corners[5 FIX(- 1)]; };

int main()
{
    Shape *s = new Polygon;
    delete hide(s);
    return 0;
}
