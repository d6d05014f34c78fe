// leaks: definite 1 SIZE at A in derived
// sizes: 24 3000 400000
// flags: -fno-sized-deallocation
// Deleted through a base whose destructor is not virtual: the derived one, which frees, does not run.
// (With the size given to delete, the other size would be found before the leak.)
#include "corpus.h"

struct base {
    long id = 1;
    FIX(virtual) ~base() {}
};

struct derived : base {
    char *buffer;
    NOINLINE derived() { POKE(buffer = (char *)malloc(SIZE), 1); } // LEAK A
    ~derived() { free(buffer); }
};

int main()
{
    base *b = hide(new derived);
    delete b;
    b = nullptr;
    wipe();
    return 0;
}
