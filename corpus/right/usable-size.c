// All of the bytes that malloc_usable_size tells of may be used.
#include "corpus.h"

int main(void)
{
    for (size_t n = 0; n < 70000; n += n / 7 + 1) {
        char *p = malloc(n);
        size_t usable = malloc_usable_size(p);
        CHECK(usable >= n);
        memset(p, 'u', usable);
        p = realloc(p, usable + 100);
        for (size_t i = 0; i < usable; i++)
            CHECK(p[i] == 'u');
        memset(p, 'v', malloc_usable_size(p));
        free(p);
    }
    CHECK(malloc_usable_size(NULL) == 0);
    return 0;
}
