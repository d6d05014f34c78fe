// finds: invalid-free
// sizes: 4096 1048576
#include "corpus.h"
#include <sys/mman.h>

int main(void)
{
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[0] = 1;
    BUG(free(hide(p));)
    munmap(hide(p), SIZE);
    return 0;
}
