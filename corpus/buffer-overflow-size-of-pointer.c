// finds: buffer-overflow
// words: 8-byte
// sizeof of the pointer, where that of the struct was meant.
#include "corpus.h"

struct point { double x, y, z; };

int main(void)
{
    struct point *p = malloc(sizeof BUG(p) FIX(*p));
    ((volatile struct point *)hide(p))->y = 1.0;
    free(hide(p));
    return 0;
}
