// finds: invalid-realloc
// words: invalid-realloc-literal
#include "corpus.h"

int main(void)
{
    char *p = (char *)"a literal", *q;
    FIX(p = strdup(p);)
    q = realloc(hide(p), 100);
    FIX(free(hide(q));)
    (void)q;
    return 0;
}
