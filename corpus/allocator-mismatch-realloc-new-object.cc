// finds: allocator-mismatch
// words: 40-byte
#include "corpus.h"

struct Job { char bytes[40]; };

int main()
{
    void *p = BUG(new Job) FIX(malloc(sizeof(Job)));
    p = realloc(hide(static_cast<char *>(p)), 4000);
    free(hide(static_cast<char *>(p)));
    return 0;
}
