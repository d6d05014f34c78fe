// finds: use-after-free
// words: 40-byte
// needs: guard=all
// After main: one global's destructor reads what another's has freed.
#include "corpus.h"
#include <memory>

struct Registry { std::unique_ptr<char[]> names{ new char[40]() }; };
struct User { const char *name = nullptr; ~User() { if (name) PEEK(hide(name)); } };

FIX(Registry registry;)
User user;
BUG(Registry registry;)

int main()
{
    user.name = registry.names.get();
    return 0;
}
