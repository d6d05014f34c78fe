// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strnlen of
// needs: bounds
// A field without an end is measured with another field's size.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    memset(p, 'a', SIZE);
    if (strnlen(hide(p), n) == 7)
        return 1;
    free(hide(p));
    return 0;
}
