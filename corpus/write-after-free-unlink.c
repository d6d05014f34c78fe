// finds: write-after-free
// words: 24-byte
// A node is unlinked from its neighbours: one of them is freed.
#include "corpus.h"

struct node { struct node *next, *previous; long id; };

int main(void)
{
    struct node *a = calloc(1, 24), *b = calloc(1, 24), *c = calloc(1, 24);
    *a = (struct node){ b, NULL, 1 }, *b = (struct node){ c, a, 2 }, *c = (struct node){ NULL, b, 3 };
    BUG(free(hide(c));)
    ((volatile struct node *)b->next)->previous = a;
    a->next = b->next;
    FIX(free(hide(c));)
    free(b);
    free(a);
    return 0;
}
