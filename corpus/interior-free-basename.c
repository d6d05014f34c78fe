// finds: interior-free
// words: 5 bytes into a 15-byte
// The last part of a path is no block of its own.
#include "corpus.h"

int main(void)
{
    char *path = strdup("/usr/local.conf");
    path[14] = 0;
    path = hide(realloc(path, 15));
    char *name = strrchr(path, '/') + 1;
    BUG(free(hide(name));)
    CHECK(name[0] == 'l');
    free(hide(path));
    return 0;
}
