// System calls into and out of exactly sized blocks, of all three sizes.
#include "corpus.h"
#include <fcntl.h>
#include <sys/uio.h>

int main(void)
{
    static const size_t sizes[] = { 1, 24, 32, 3000, 4096, 400000, 1 << 20 };
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 7; i++) {
        size_t n = sizes[i];
        char *p = malloc(n), *q = malloc(n);
        CHECK(read(zero, p, n) == (ssize_t)n && write(null, p, n) == (ssize_t)n);
        struct iovec parts[2] = { { p, n }, { q, n } };
        CHECK(readv(zero, parts, 2) == (ssize_t)(2 * n) && writev(null, parts, 2) == (ssize_t)(2 * n));
        free(p);
        free(q);
    }
    close(zero);
    close(null);
    return 0;
}
