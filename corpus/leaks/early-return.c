// leaks: definite 1 SIZE at A in parse
// sizes: 24 3000 400000
// The way out for bad input forgets what the way out at the end frees.
#include "corpus.h"

NOINLINE int parse(const char *text)
{
    char *copy = malloc(SIZE); // LEAK A
    strcpy(copy, text);
    if (copy[0] != '#') {
        FIX(free(copy);)
        return -1;
    }
    free(copy);
    return 0;
}

int main(void)
{
    CHECK(parse("#good") == 0);
    CHECK(parse("bad") == -1);
    return 0;
}
