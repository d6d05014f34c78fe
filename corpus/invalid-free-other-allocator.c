// finds: invalid-free
// sizes: 24 3000
// A block of the program's own allocator, which takes its memory from mmap.
#include "corpus.h"
#include <sys/mman.h>

static char *region, *top;

NOINLINE void *bump(size_t n)
{
    void *p = top;
    top += (n + 15) & ~(size_t)15;
    return hide(p);
}

int main(void)
{
    region = top = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bump(100);
    char *p = bump(SIZE);
    p[0] = 1;
    BUG(free(hide(p));)
    munmap(region, 1 << 20);
    return 0;
}
