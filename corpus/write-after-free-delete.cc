// finds: write-after-free
// words: 40-byte
#include "corpus.h"

struct Job { long done; char bytes[32]; };

int main()
{
    Job *job = new Job;
    BUG(delete hide(job);)
    const_cast<volatile Job *>(hide(job))->done = 1;
    FIX(delete hide(job);)
    return 0;
}
