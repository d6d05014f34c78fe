// finds: invalid-free
// stack: name_of
// A function returns its static buffer, and its caller frees it.
#include "corpus.h"

NOINLINE char *name_of(int id)
{
    static char name[32];
    snprintf(name, sizeof name, "item %d", id);
    free(hide(BUG(name) FIX(strdup(name))));
    return hide(name);
}

int main(void)
{
    return name_of(7)[0] == 'i' ? 0 : 1;
}
