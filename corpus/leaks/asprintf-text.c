// leaks: definite 1 18 at A in label
// What asprintf makes is its caller's.
#include "corpus.h"

NOINLINE size_t label(int number)
{
    char *text;
    int n = asprintf(&text, "item number %d", number); // LEAK A
    CHECK(n == 17);
    FIX(free(text);)
    return (size_t)n;
}

int main(void)
{
    CHECK(label(12345) == 17);
    wipe();
    return 0;
}
