// leaks: reachable 10 10*SIZE at A in main
// sizes: 24 3000
// lsan: differs It follows no pointers in memory of another allocator.
// The only pointers lie in memory that another allocator took from the kernel by brk.
#include "corpus.h"

int main(void)
{
    char **table = sbrk(1 << 16);
    CHECK(table != (void *)-1);
    for (int i = 0; i < 10; i++) {
        table[i * 700] = malloc(SIZE); // LEAK A
        POKE(table[i * 700], 1);
    }
    FIX(for (int i = 0; i < 10; i++) free(table[i * 700]);)
    wipe();
    return 0;
}
