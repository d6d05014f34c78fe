// finds: use-after-free
// sizes: 40 3000 400000
// needs: guard=all
// A view of a temporary string.
#include "corpus.h"
#include <string>
#include <string_view>

NOINLINE std::string name() { return std::string(SIZE, 'v'); }

int main()
{
    FIX(std::string kept = name();)
    std::string_view view = BUG(name()) FIX(kept);
    PEEK(hide(view.data()));
    return 0;
}
