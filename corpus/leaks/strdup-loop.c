// leaks: definite 100 1200 at A in remember
// A hundred copies, each lost when the next is made: one place, a hundred blocks.
#include "corpus.h"

NOINLINE size_t remember(const char *text)
{
    char *copy = strdup(text); // LEAK A
    size_t n = strlen(copy);
    FIX(free(copy);)
    return n;
}

int main(void)
{
    size_t n = 0;
    for (int i = 0; i < 100; i++)
        n += remember("eleven char");
    CHECK(n == 1100);
    wipe();
    return 0;
}
