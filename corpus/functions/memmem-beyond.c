// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by memmem of
// needs: bounds
// Bytes that are not there are looked for one byte too far.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    if (memmem(hide(p), n, "xy", 2))
        return 1;
    free(hide(p));
    return 0;
}
