// finds: invalid-free
// A file's contents are freed: they were read once, and are mapped now.
#include "corpus.h"
#include <fcntl.h>
#include <sys/mman.h>

int main(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    close(fd);
    BUG(free(hide(p));)
    munmap(hide(p), 4096);
    return 0;
}
