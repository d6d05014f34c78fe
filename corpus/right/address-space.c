// Under ulimit -v of 2 GiB: it works, is told when it is used up, and works on.
// run: ulimit -v 2097152;
// asan: alien
#include "corpus.h"

int main(void)
{
    static void *blocks[4096];
    int n = 0;
    while (n < 4096 && (blocks[n] = malloc(1 << 20)) != NULL)
        n++;
    CHECK(n > 50 && n < 2048 && errno == ENOMEM);
    for (int i = 0; i < n; i++)
        free(blocks[i]);
    churn(10000);
    char *p = malloc(8 << 20);
    CHECK(p != NULL);
    free(p);
    return 0;
}
