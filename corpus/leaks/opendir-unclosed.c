// leaks: definite 1 ? at A in count
// A directory that is not closed.
#include "corpus.h"
#include <dirent.h>

NOINLINE int count(const char *path)
{
    DIR *d = opendir(path); // LEAK A
    int n = 0;
    while (readdir(d) != NULL)
        n++;
    FIX(closedir(d);)
    return n;
}

int main(void)
{
    CHECK(count("/proc/self/fd") > 0);
    wipe();
    return 0;
}
