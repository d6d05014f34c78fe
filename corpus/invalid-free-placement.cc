// finds: invalid-free
// words: invalid-free-placement
// An object in a static buffer was made by placement: there is nothing to free.
#include "corpus.h"
#include <new>

struct Job { int id; ~Job() { hide(this); } };
alignas(16) static char room[64];

int main()
{
    Job *p = new (room) Job();
    BUG(delete hide(p);)
    FIX(hide(p)->~Job();)
    return 0;
}
