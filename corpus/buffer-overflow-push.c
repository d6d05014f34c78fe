// finds: buffer-overflow
// words: 64-byte
// A vector by hand that grows after it has written.
#include "corpus.h"

static long *items;
static size_t used, room = 8;

static void push(long value)
{
    FIX(if (used == room) items = realloc(items, (room *= 2) * sizeof *items);)
    ((volatile long *)hide(items))[used++] = value;
    BUG(if (used > room) items = realloc(items, (room *= 2) * sizeof *items);)
}

int main(void)
{
    items = malloc(room * sizeof *items);
    for (long i = 0; i < 9; i++)
        push(i);
    free(hide(items));
    return 0;
}
