// Reads of whole words up to the end of a block's last word, as the vectorised
// string functions do, and of bytes never written: allowed, and not reported.
// asan: alien
#include "corpus.h"

int main(void)
{
    for (size_t n = 1; n < 5000; n += n / 9 + 1) {
        char *p = malloc(n);
        for (size_t k = 0; k < n; k++)
            PEEK(p + k);
        memset(p, 'x', n);
        p[n - 1] = 0;
        CHECK(strlen(hide(p)) == n - 1 && strchr(p, 'y') == NULL && memchr(p, 0, n) == p + n - 1);
        CHECK(strnlen(p, 100000) == n - 1 && rawmemchr(p, 0) == p + n - 1);
        char *q = strdup(p);
        CHECK(strcmp(p, q) == 0 && memcmp(p, q, n) == 0);
        free(q);
        free(p);
    }
    return 0;
}
