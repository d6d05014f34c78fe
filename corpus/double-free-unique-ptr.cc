// finds: double-free
// words: 40-byte
// get() where release() was meant: two owners.
#include "corpus.h"
#include <memory>

struct Job { char bytes[40]; };

int main()
{
    std::unique_ptr<Job> a(new Job);
    std::unique_ptr<Job> b(hide(a.BUG(get()) FIX(release())));
    return 0;
}
