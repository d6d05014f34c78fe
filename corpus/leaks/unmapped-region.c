// leaks: definite 10 10*SIZE at A in main
// sizes: 24 3000
// As mapped-region, but the memory with the pointers is given back.
#include "corpus.h"
#include <sys/mman.h>

int main(void)
{
    char **table = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(table != MAP_FAILED);
    for (int i = 0; i < 10; i++) {
        table[i * 12345] = malloc(SIZE); // LEAK A
        POKE(table[i * 12345], 1);
    }
    FIX(for (int i = 0; i < 10; i++) free(table[i * 12345]);)
    munmap(table, 1 << 20);
    wipe();
    return 0;
}
