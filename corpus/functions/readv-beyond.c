// finds: buffer-overflow
// sizes: 24 3000 400001
// words: by readv of
// The kernel writes one byte more than there is room for.
#include "../corpus.h"
#include <sys/uio.h>

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    struct iovec part = {hide(p), n};
    FILE *zeros = fopen("/dev/zero", "r");
    if (readv(fileno(zeros), &part, 1) < 0)
        return 1;
    fclose(zeros);
    free(hide(p));
    return 0;
}
