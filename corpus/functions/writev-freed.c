// finds: use-after-free
// sizes: 24 3000 400000
// words: by writev of
// needs: bounds
// One of the parts of a message was freed.
#include "../corpus.h"
#include <sys/uio.h>

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    struct iovec part = {hide(p), SIZE};
    FILE *null = fopen("/dev/null", "w");
    if (writev(fileno(null), &part, 1) < 0)
        return 1;
    fclose(null);
    FIX(free(hide(p));)
    return 0;
}
