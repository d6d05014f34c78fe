// finds: invalid-free
// words: invalid-free-code
// The fields of a struct of pointers were swapped: it frees a function.
#include "corpus.h"

struct handler { void *data; void (*call)(void); };
NOINLINE void call(void) { hide(NULL); }

int main(void)
{
    struct handler h = { malloc(24), call };
    BUG(free(hide((void *)h.call));)
    h.call();
    free(hide(h.data));
    return 0;
}
