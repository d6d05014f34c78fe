// finds: size-mismatch
// words: allocated as 40
// Deleted as another type than it was made: the cast was wrong.
#include "corpus.h"

struct Request { char bytes[40]; };
struct Answer { char bytes[56]; };

int main()
{
    void *p = new Request;
    delete reinterpret_cast<BUG(Answer) FIX(Request) *>(hide(static_cast<char *>(p)));
    return 0;
}
