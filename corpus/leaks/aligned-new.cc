// leaks: definite 3 3*128 at A in make
// Objects with an alignment of their own.
#include "corpus.h"

struct alignas(64) line { char bytes[128]; };

NOINLINE void make()
{
    line *l = hide(new line()); // LEAK A
    FIX(delete l;)
}

int main()
{
    make(), make(), make();
    wipe();
    return 0;
}
