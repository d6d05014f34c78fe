// leaks: reachable 1 ? at A in first
// A file that is not closed: the C library has a list of all of them.
#include "corpus.h"

NOINLINE int first(const char *path)
{
    FILE *f = fopen(path, "r"); // LEAK A
    setvbuf(f, NULL, _IONBF, 0);
    int c = fgetc(f);
    FIX(fclose(f);)
    return c;
}

int main(void)
{
    CHECK(first("/proc/self/cmdline") > 0);
    wipe();
    return 0;
}
