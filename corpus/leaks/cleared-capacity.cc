// leaks: reachable 30 30*40 at A in add
// A cleared vector keeps its memory, and what lies in it still leads to the blocks.
#include "corpus.h"
#include <vector>

struct item { char bytes[40]; };
std::vector<item *> *items;

NOINLINE void add() { items->push_back(hide(new item())); } // LEAK A

int main()
{
    items = new std::vector<item *>;
    items->reserve(30);
    for (int i = 0; i < 30; i++)
        add();
    FIX(for (item *i : *items) delete i;)
    items->clear();
    FIX(delete items;)
    wipe();
    return 0;
}
