// finds: buffer-overflow
// sizes: 40 3000 400000
// Behind the NUL of a string's data.
#include "corpus.h"
#include <string>

int main()
{
    std::string text(SIZE, 's');
    char *data = hide(&text[0]);
    memset(data + text.capacity() - 1, 0, 1 BUG(+ 4));
    return 0;
}
