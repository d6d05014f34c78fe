// leaks: reachable 1 ? at A in main
// The only pointer is to an object's second base, which does not lie at its start.
#include "corpus.h"

struct shape { virtual ~shape() {} long id = 1; };
struct listener { virtual ~listener() {} long events = 2; };
struct button : shape, listener { char label[40] = "ok"; };

listener *global;

int main()
{
    global = hide(new button); // LEAK A
    FIX(delete global; global = nullptr;)
    wipe();
    return 0;
}
