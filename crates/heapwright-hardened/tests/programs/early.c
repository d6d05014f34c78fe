/*
 * A library preloaded behind libheapwright-hardened.so, so its constructor runs first. It calls
 * checked functions before the real ones are known. With EARLY=beyond it writes out of bounds.
 */
#include "check.h"

__attribute__((constructor)) static void early(void)
{
    char local[64];
    errno = 7;
    CHECK(sprintf(local, "%d %.2f", 12, 0.5) == 7 && strcmp(local, "12 0.50") == 0);
    CHECK(errno == 7);
    char *block = malloc(32);
    memcpy(block, local, 32);
    memmove(block + 1, block, 31);
    CHECK(strcmp(block + 1, local) == 0);
    if (getenv("EARLY"))
        memset(block, 0, 33);
    free(block);
}
