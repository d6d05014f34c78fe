// finds: allocator-mismatch
// words: 40-byte
#include "corpus.h"

struct Job { char bytes[40]; };

int main()
{
    Job *p = new Job;
    delete BUG([]) hide(p);
    return 0;
}
