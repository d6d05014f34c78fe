// finds: write-after-free
// sizes: 40 3000 400000
// The address of a character, and a text that is appended.
#include "corpus.h"
#include <string>

int main()
{
    std::string text(SIZE, 's');
    char *at = hide(&text[3]);
    text.append(text.capacity() * 2, 'x');
    FIX(at = hide(&text[3]);)
    POKE(at, 'S');
    return 0;
}
