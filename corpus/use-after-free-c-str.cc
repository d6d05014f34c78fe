// finds: use-after-free
// sizes: 40 3000
// needs: guard=all
// c_str() of a string that was moved from its place: the map has grown old.
#include "corpus.h"
#include <memory>
#include <string>

int main()
{
    auto text = std::make_unique<std::string>(SIZE, 't');
    const char *chars = text->c_str();
    BUG(text.reset();)
    PEEK(hide(chars));
    return 0;
}
