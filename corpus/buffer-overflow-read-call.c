// finds: buffer-overflow
// sizes: 24 3000 400008
// words: %SIZE%-byte
// The kernel writes past the end: the bound in read(2) is wrong.
#include "corpus.h"
#include <fcntl.h>

int main(void)
{
    char *p = malloc(SIZE);
    int fd = open("/dev/zero", O_RDONLY);
    CHECK(read(fd, hide(p), SIZE BUG(+ 3)) >= (ssize_t)SIZE);
    close(fd);
    free(hide(p));
    return 0;
}
