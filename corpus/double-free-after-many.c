// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// asan: blind for large blocks: its quarantine has given them back by then
// The second free comes 20,000 blocks of the same class later, or many hundred
// MiB: the memory of the first has been unmapped meanwhile, and is still known.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    free(hide(p));
    for (int i = 0; i < (SIZE > 100000 ? 2000 : 20000); i++)
        free(hide(malloc(SIZE)));
    BUG(free(hide(p));)
    return 0;
}
