// Blocks of no bytes: each has an address of its own, and is freed or grown.
#include "corpus.h"

int main(void)
{
    char *p[300];
    for (int i = 0; i < 300; i++) {
        p[i] = i % 3 == 0 ? malloc(0) : i % 3 == 1 ? calloc(0, 8) : realloc(NULL, 0);
        CHECK(p[i] != NULL);
        for (int k = 0; k < i; k++)
            CHECK(p[k] != p[i]);
    }
    for (int i = 0; i < 300; i++) {
        if (i % 2)
            p[i] = memset(realloc(p[i], 50), 1, 50);
        free(p[i]);
    }
    free(NULL);
    return 0;
}
