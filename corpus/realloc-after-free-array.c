// finds: realloc-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// reallocarray of a list that was reset, and its pointer not.
#include "corpus.h"

int main(void)
{
    char *list = malloc(SIZE);
    free(hide(list));
    FIX(list = NULL;)
    char *more = reallocarray(hide(list), 2, SIZE);
    FIX(free(hide(more));)
    (void)more;
    return 0;
}
