// finds: use-after-free
// sizes: 24 3000 400000
// words: by strtok_r of
// needs: bounds
// asan: blind it looks at the first call alone
// The rest of a text that was freed is taken apart.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    char *rest = hide(p);
    if (strtok_r(NULL, ":", &rest) == NULL)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
