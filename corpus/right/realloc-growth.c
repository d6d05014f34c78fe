// One block grows to 200 MiB, by halves, and shrinks again; its text stays.
#include "corpus.h"

int main(void)
{
    size_t n = 100, top = 200 << 20;
    char *p = malloc(n);
    memset(p, 'g', n);
    while (n < top) {
        size_t more = n + n / 2 + 1;
        p = realloc(p, more);
        CHECK(p != NULL && p[0] == 'g' && p[n - 1] == 'g');
        p[more - 1] = 'g';
        n = more;
    }
    while (n > 100) {
        n /= 3;
        p = realloc(p, n);
        CHECK(p != NULL && p[0] == 'g');
        p[n - 1] = 'g';
    }
    free(p);
    return 0;
}
