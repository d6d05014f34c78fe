// finds: double-free
// words: 48-byte
// Two shared pointers that do not know of each other.
#include "corpus.h"
#include <memory>

struct Job { char bytes[48]; };

int main()
{
    Job *job = new Job;
    std::shared_ptr<Job> a(hide(job));
    BUG(std::shared_ptr<Job> b(hide(job));)
    FIX(std::shared_ptr<Job> b(a);)
    return 0;
}
