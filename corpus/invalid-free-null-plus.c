// finds: invalid-free
// A field of a struct that could not be had: null and a little more.
#include "corpus.h"

struct connection { long id; char name[24]; };

int main(void)
{
    struct connection *c = hide(NULL);
    BUG(free(hide(c->name));)
    free(hide(c));
    return 0;
}
