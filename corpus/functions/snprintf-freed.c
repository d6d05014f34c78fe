// finds: use-after-free
// sizes: 24 3000 400000
// words: by snprintf of
// needs: bounds
// A format takes the start of a text that was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    char line[64];
    snprintf(line, sizeof line, "%-8s: %.20s", "name", (char *)hide(p));
    FIX(free(hide(p));)
    return 0;
}
