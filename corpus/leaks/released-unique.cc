// leaks: definite 20 20*40 at A in collect
// unique_ptr::release in a loop, as if it freed.
#include "corpus.h"
#include <memory>
#include <vector>

struct item { char bytes[40]; };

NOINLINE void collect()
{
    std::vector<std::unique_ptr<item>> items;
    for (int i = 0; i < 20; i++)
        items.emplace_back(hide(new item())); // LEAK A
    for (auto &i : items)
        i.BUG(release) FIX(reset)();
}

int main()
{
    collect();
    wipe();
    return 0;
}
