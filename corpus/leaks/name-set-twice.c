// leaks: definite 3 3*6 at A in set_name
// leaks: reachable 1 6 at A in set_name
// A setter overwrites the text that it set before.
#include "corpus.h"

struct thing { char *name; } thing;

NOINLINE void set_name(const char *name)
{
    FIX(free(thing.name);)
    thing.name = strdup(name); // LEAK A
}

int main(void)
{
    set_name("first");
    set_name("secnd");
    set_name("third");
    set_name("forth");
    return 0;
}
