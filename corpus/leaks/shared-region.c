// leaks: reachable 1 SIZE at A in main
// sizes: 24 3000
// lsan: differs It follows no pointers in memory that the program mapped, unless it is told to.
// The only pointer lies in memory that is shared with other processes.
#include "corpus.h"
#include <sys/mman.h>

int main(void)
{
    char *volatile *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared[100] = malloc(SIZE); // LEAK A
    POKE(shared[100], 1);
    FIX(free(shared[100]);)
    wipe();
    return 0;
}
