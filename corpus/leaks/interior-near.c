// leaks: reachable 1 SIZE at A in main
// sizes: 100 3000 400000
// valgrind: differs It calls a block possibly lost that only a pointer behind its start leads to.
// A pointer behind a header, as many allocators on top of malloc give out.
#include "corpus.h"

struct header { size_t size, magic; };
char *payload;

int main(void)
{
    struct header *h = calloc(1, SIZE); // LEAK A
    payload = (char *)(h + 1);
    FIX(free(h); payload = NULL;)
    h = hide(NULL);
    wipe();
    return 0;
}
