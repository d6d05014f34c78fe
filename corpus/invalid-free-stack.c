// finds: invalid-free
// words: stack
#include "corpus.h"

int main(void)
{
    char local[64] = "on the stack", *p = malloc(24);
    BUG(free(hide(local));)
    (void)hide(local);
    free(p);
    return 0;
}
