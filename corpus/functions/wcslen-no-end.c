// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by wcslen of
// needs: bounds
// A wide text without an end is measured.
#include "../corpus.h"
#include <wchar.h>

int main(void)
{
    wchar_t *p = malloc(SIZE * sizeof *p);
    wmemset(p, L'a', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (wcslen(hide(p)) == 7)
        return 1;
    free(hide(p));
    return 0;
}
