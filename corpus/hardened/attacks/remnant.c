/* A fresh block shows what was in it before: a key, a password, an address. Small and large. */
#include "attack.h"

static bool shows_secret(size_t size)
{
    static const char secret[] = "the key to the house";
    char *p = malloc(size);
    for (size_t at = 0; at + sizeof secret <= size; at += 32)
        memcpy(p + at, secret, sizeof secret);
    free(p);
    for (int i = 0; i < 200; i++) {
        char *q = hide(malloc(size));
        if (memmem(q, size, secret + 8, sizeof secret - 8) != NULL)
            return true;
    }
    return false;
}

static bool attempt(void) { return shows_secret(200) || shows_secret(5000) || shows_secret(300000); }
