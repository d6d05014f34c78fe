// leaks: reachable 10 10*SIZE at A in main
// sizes: 24 3000
// lsan: differs It follows no pointers in memory that the program mapped, unless it is told to.
// The only pointers lie in memory that the program mapped itself.
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
    wipe();
    return 0;
}
