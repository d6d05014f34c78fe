// finds: buffer-overflow
// words: 16-byte
// needs: guard=all
// A field that only the newer version of a struct has.
#include "corpus.h"

struct version1 { long version, flags; };
struct version2 { struct version1 old; long limit; };

int main(void)
{
    struct version1 *v = calloc(1, BUG(sizeof(struct version1)) FIX(sizeof(struct version2)));
    volatile long limit = ((volatile struct version2 *)hide(v))->limit;
    (void)limit;
    free(hide(v));
    return 0;
}
