// finds: invalid-free
// words: invalid-free-global
// The report names the program whose data it is.
#include "corpus.h"

static char global[64] = "initialised data";

int main(void)
{
    char *p = global;
    FIX(p = strdup(global);)
    free(hide(p));
    return 0;
}
