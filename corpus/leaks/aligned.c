// leaks: definite 1 SIZE at A in main
// leaks: definite 1 64 at B in main
// sizes: 4096 65536
// Blocks with an alignment of their own.
#include "corpus.h"

int main(void)
{
    void *page = aligned_alloc(4096, SIZE); // LEAK A
    void *line = NULL;
    CHECK(posix_memalign(&line, 64, 64) == 0); // LEAK B
    POKE(page, 1);
    POKE(line, 1);
    FIX(free(page); free(line);)
    page = line = hide(NULL);
    wipe();
    return 0;
}
