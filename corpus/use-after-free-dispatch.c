// finds: use-after-free
// words: 40-byte
// needs: guard=all
// The table of an object's functions is read from an object that is gone.
#include "corpus.h"

struct stream { int (*get)(struct stream *); char name[32]; };
static int get(struct stream *s) { (void)s; return 0; }

int main(void)
{
    struct stream *s = calloc(1, sizeof *s);
    s->get = get;
    BUG(free(hide(s));)
    int (*volatile call)(struct stream *) = ((volatile struct stream *)hide(s))->get;
    (void)call;
    FIX(free(hide(s));)
    return 0;
}
