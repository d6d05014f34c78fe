// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Two structs share a buffer since one was assigned to the other.
#include "corpus.h"

struct message { char *body; int length; };

int main(void)
{
    struct message a = { malloc(SIZE), 1 }, b = a;
    FIX(b.body = malloc(SIZE);)
    free(hide(a.body));
    free(hide(b.body));
    return 0;
}
