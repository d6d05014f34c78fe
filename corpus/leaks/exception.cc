// leaks: definite 1 SIZE at A in work
// sizes: 24 3000 400000
// Thrown between new and delete; the fixed one has an owner.
#include "corpus.h"
#include <memory>
#include <stdexcept>

NOINLINE void may_throw(char *p)
{
    POKE(p, 1);
    throw std::runtime_error("no");
}

NOINLINE void work()
{
    char *p = hide(new char[SIZE]); // LEAK A
    FIX(std::unique_ptr<char[]> owner(p);)
    may_throw(p);
    delete[] p;
}

int main()
{
    try {
        work();
    } catch (const std::exception &) {
    }
    wipe();
    return 0;
}
