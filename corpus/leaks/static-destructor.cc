// leaks: definite 1 SIZE at A in ~object
// sizes: 24 3000 400000
// The destructor of a global object loses a block, after main.
#include "corpus.h"

struct object {
    NOINLINE ~object()
    {
        char *p = hide(new char[SIZE]); // LEAK A
        POKE(p, 1);
        FIX(delete[] p;)
    }
} object;

int main()
{
    return 0;
}
