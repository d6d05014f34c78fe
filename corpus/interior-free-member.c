// finds: interior-free
// words: 16 bytes into a 48-byte
// The list's link is freed, and not the struct that it is in.
#include "corpus.h"

struct link { struct link *next, *previous; };
struct item { long id, weight; struct link link; long more[2]; };

int main(void)
{
    struct item *item = calloc(1, sizeof *item);
    struct link *found = hide(&item->link);
    BUG(free(found);)
    free(hide((char *)found - offsetof(struct item, link)));
    return 0;
}
