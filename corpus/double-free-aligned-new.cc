// finds: double-free
// words: 128-byte
#include "corpus.h"

struct alignas(64) Line { char bytes[128]; };

int main()
{
    Line *p = new Line;
    delete hide(p);
    BUG(delete hide(p);)
    return 0;
}
