// 60,000 blocks at a time, more than a process may have mappings if each had
// its own: freed in another order than they came.
#include "corpus.h"

int main(void)
{
    enum { N = 60000 };
    char **p = calloc(N, sizeof *p);
    for (int i = 0; i < N; i++) {
        p[i] = malloc((size_t)(i % 50 + 1));
        CHECK(p[i] != NULL);
        p[i][i % 50] = (char)i;
    }
    for (long i = 0, k = 0; i < N; i++, k = (k + 7919) % N) {
        CHECK(p[k][k % 50] == (char)k);
        free(p[k]);
        p[k] = NULL;
    }
    free(p);
    return 0;
}
