// finds: buffer-underflow
// words: 40-byte
// The number before an array of objects, where the array has none.
#include "corpus.h"

int main()
{
    long *p = new long[5];
    const_cast<volatile long *>(hide(p))[0 BUG(- 1)] = 5;
    delete[] hide(p);
    return 0;
}
