// finds: invalid-free
// words: stack
// free(&p) where free(p) was meant.
#include "corpus.h"

int main(void)
{
    char *p = malloc(24);
    BUG(free(hide(&p));)
    free(hide(p));
    return 0;
}
