// leaks: reachable 1 SIZE*16+8 at A in main
// sizes: 3 200 30000
// new[] of objects with destructors: the pointer is eight bytes behind the start of the block.
#include "corpus.h"

struct object { long a = 1, b = 2; ~object() { a = 0; } };
object *objects;

int main()
{
    objects = new object[SIZE]; // LEAK A
    FIX(delete[] objects; objects = nullptr;)
    wipe();
    return 0;
}
