// leaks: reachable 1 32 at A in instance
// leaks: reachable 1 SIZE+1 at B in instance
// sizes: 100 3000
// A singleton that is never deleted, on purpose: a static pointer leads to it.
#include "corpus.h"
#include <string>

NOINLINE std::string &instance()
{
    static std::string *one;
    if (one == nullptr) {
        one = hide(new std::string); // LEAK A
        one->assign(SIZE, 'x');      // LEAK B
    }
    return *one;
}

int main()
{
    PEEK(instance().data());
    FIX(delete &instance();)
    wipe();
    return 0;
}
