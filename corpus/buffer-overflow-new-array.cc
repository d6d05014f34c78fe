// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main()
{
    char *p = new char[SIZE];
    memset(hide(p), 'n', SIZE BUG(+ 1));
    delete[] hide(p);
    return 0;
}
