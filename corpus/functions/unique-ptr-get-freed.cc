// finds: use-after-free
// sizes: 24 3000 400000
// words: by strcmp of
// needs: bounds
// A pointer out of a unique_ptr that let go of it.
#include "../corpus.h"
#include <memory>

int main(void)
{
    std::unique_ptr<char[]> owner(new char[SIZE]());
    char *p = owner.get();
    BUG(owner.reset();)
    if (strcmp(hide(p), "a") == 7)
        return 1;
    return 0;
}
