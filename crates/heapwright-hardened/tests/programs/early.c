/*
 * A library whose constructor runs before that of libheapwright-hardened.so (it is preloaded behind it), and calls the
 * checked functions before anybody has looked for the real ones. With EARLY=beyond it does wrong.
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
