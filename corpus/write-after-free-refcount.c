// finds: write-after-free
// words: 48-byte
// The count is in the object: the last but one has freed it.
#include "corpus.h"

struct object { long count; char body[40]; };

static void drop(struct object *o)
{
    if (--((volatile struct object *)hide(o))->count BUG(<= 1) FIX(== 0))
        free(hide(o));
}

int main(void)
{
    struct object *o = malloc(sizeof *o);
    o->count = 2;
    drop(o);
    FIX(drop(o);)
    BUG(((volatile struct object *)hide(o))->count--;)
    return 0;
}
