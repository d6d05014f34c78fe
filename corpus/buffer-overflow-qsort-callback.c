// finds: buffer-overflow
// words: 32-byte
// stack: compare
// The comparison counts its calls in a table that is too short.
#include "corpus.h"

static int *calls, used;

NOINLINE int compare(const void *a, const void *b)
{
    if (used < 8 BUG(+ 1)) {
        free(hide(malloc(1)));
        ((volatile int *)hide(calls))[used++] = 1;
        BUG(if (used == 9) calls = realloc(calls, 64);)
    }
    return *(const char *)a - *(const char *)b;
}

int main(void)
{
    char letters[] = "thequickbrownfox";
    calls = malloc(8 * sizeof *calls);
    qsort(letters, 16, 1, compare);
    free(hide(calls));
    return 0;
}
