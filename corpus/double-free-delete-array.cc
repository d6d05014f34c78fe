// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main()
{
    char *p = new char[SIZE];
    delete[] hide(p);
    BUG(delete[] hide(p);)
    return 0;
}
