// finds: double-free
// sizes: 40 3000
// A string's buffer is freed by hand, and by the string.
#include "corpus.h"
#include <string>

int main()
{
    std::string text(SIZE, 's');
    BUG(::operator delete(hide(&text[0]));)
    return text.size() == SIZE ? 0 : 1;
}
