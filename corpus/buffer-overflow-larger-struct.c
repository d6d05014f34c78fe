// finds: buffer-overflow
// words: 16-byte
// A base struct was allocated and is used as a derived one.
#include "corpus.h"

struct shape { int kind; double area; };
struct coloured { struct shape base; int colour; };

NOINLINE void set_colour(struct shape *s, int c)
{
    ((volatile struct coloured *)hide(s))->colour = c;
}

int main(void)
{
    struct shape *s = malloc(sizeof(struct BUG(shape) FIX(coloured)));
    s->kind = 1;
    set_colour(s, 7);
    free(hide(s));
    return 0;
}
