// finds: invalid-free
// Nothing is mapped where it points to.
#include "corpus.h"
#include <sys/mman.h>

int main(void)
{
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hide(p), 1 << 20);
    BUG(free(hide(p + 4096));)
    return 0;
}
