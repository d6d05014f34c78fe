// leaks: reachable 5 5*SIZE at A in remember
// sizes: 24 3000 400000
// valgrind: differs It calls a block possibly lost that only a pointer behind its start leads to.
// The low three bits of the only pointers say what they point to.
#include "corpus.h"

union value { uintptr_t bits; void *object; double number; } values[5];

NOINLINE void remember(int i)
{
    values[i].object = malloc(SIZE); // LEAK A
    POKE(values[i].object, 1);
    values[i].bits |= (uintptr_t)i % 4 + 1;
}

int main(void)
{
    for (int i = 0; i < 5; i++)
        remember(i);
    FIX(for (int i = 0; i < 5; i++) free((void *)(values[i].bits & ~(uintptr_t)7));)
    wipe();
    return 0;
}
