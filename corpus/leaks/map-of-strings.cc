// leaks: definite 1 48 at A in make with 20 10*72+10*101
// leaks: indirect 20 10*72+10*101 at B in fill
// lsan: differs The nodes lead back to the map: it calls all of them indirectly lost.
// A map made by new and never deleted: its nodes and their texts are lost with it.
#include "corpus.h"
#include <map>
#include <string>

using table = std::map<int, std::string>;

NOINLINE table *make() { return hide(new table); } // LEAK A

NOINLINE void fill(table &t)
{
    for (int i = 0; i < 10; i++)
        t[i] = std::string(100, 'x'); // LEAK B
}

int main()
{
    table *t = make();
    fill(*t);
    FIX(delete t;)
    t = nullptr;
    wipe();
    return 0;
}
