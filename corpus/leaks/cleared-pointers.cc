// leaks: definite 30 30*40 at A in add
// lsan: differs It finds 22: the addresses of eight still lie in thread-local memory of its own allocator.
// A vector of pointers is cleared: the pointers end, what they point to does not.
#include "corpus.h"
#include <vector>

struct item { char bytes[40]; };
std::vector<item *> items;

NOINLINE void add() { items.push_back(hide(new item())); } // LEAK A

int main()
{
    for (int i = 0; i < 30; i++)
        add();
    FIX(for (item *i : items) delete i;)
    items.clear();
    items.shrink_to_fit();
    wipe();
    return 0;
}
