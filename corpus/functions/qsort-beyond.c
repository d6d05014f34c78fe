// finds: buffer-overflow
// sizes: 24 3000 400001
// words: by qsort of
// asan: blind it does not look at what qsort is given
// An array is sorted with one element more than it has.
#include "../corpus.h"

static int compare(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    qsort(hide(p), n, 1, compare);
    free(hide(p));
    return 0;
}
