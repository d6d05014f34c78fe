// finds: use-after-free
// words: 14-byte
// needs: guard=all
// asan: blind to what the C library itself reads
// putenv keeps the string that it is given; the string is freed.
#include "corpus.h"

int main(void)
{
    char *setting = strdup("CORPUS=present");
    setting = hide(realloc(setting, 14 FIX(+ 1)));
    BUG(setting[13] = 0;)
    putenv(setting);
    BUG(free(hide(setting));)
    volatile int found = getenv("CORPUS") != NULL;
    (void)found;
    FIX(putenv("CORPUS"); free(hide(setting));)
    return 0;
}
