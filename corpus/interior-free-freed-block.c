// finds: interior-free|double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Within a block that is freed already: both names say what is wrong.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    free(hide(p));
    BUG(free(hide(p + 8));)
    return 0;
}
