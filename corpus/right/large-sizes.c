// Large blocks of ever other sizes, which share the places where the last ones were.
#include "corpus.h"

int main(void)
{
    size_t step = 77777;
    for (size_t i = 0; i < 300; i++) {
        size_t size = 180000 + i * step % 400000;
        char *p = i % 2 ? malloc(size) : calloc(1, size);
        if (i % 2 == 0)
            for (size_t at = 0; at < size; at += 4000)
                if (p[at])
                    abort();
        memset(hide(p), 'l', size);
        if (i % 3 == 0) {
            p = realloc(p, size + 100000);
            memset(hide(p), 'm', size + 100000);
        }
        free(hide(p));
    }
    return 0;
}
