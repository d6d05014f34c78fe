// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// A struct is freed, but not what a member of it points to. What a freed block held is no pointer.
#include "corpus.h"

struct user { long id; char *name; };

int main(void)
{
    struct user *u = calloc(1, sizeof *u);
    u->name = malloc(SIZE); // LEAK A
    POKE(u->name, 'x');
    FIX(free(u->name);)
    free(hide(u));
    return 0;
}
