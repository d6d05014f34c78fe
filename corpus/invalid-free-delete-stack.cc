// finds: invalid-free
// words: stack
#include "corpus.h"

struct Job { char bytes[40]; };

int main()
{
    Job local, *p = new Job;
    BUG(delete hide(&local);)
    hide(&local);
    delete hide(p);
    return 0;
}
