// leaks: reachable 7 0 at A in main
// Pointers to blocks without a byte keep them.
#include "corpus.h"

void *kept[7];

int main(void)
{
    for (int i = 0; i < 7; i++)
        kept[i] = malloc((size_t)hide(NULL)); // LEAK A
    FIX(for (int i = 0; i < 7; i++) free(kept[i]);)
    wipe();
    return 0;
}
