// finds: invalid-free
// A pointer that was overwritten with text.
#include "corpus.h"

int main(void)
{
    struct { char name[8]; char *p; } s = { "", malloc(24) };
    char *kept = hide(s.p);
    BUG(memset(hide(s.name), 'A', sizeof s);)
    free(hide(s.p));
    BUG(free(hide(kept));)
    return 0;
}
