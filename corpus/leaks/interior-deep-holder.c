// leaks: possible 3 500+2*32 at A|B in main
// lsan: differs To it a pointer to any byte of a block keeps the block.
// What only a possibly lost block leads to is possibly lost.
#include "corpus.h"

char *cursor;
struct node { struct node *next; char rest[24]; };

int main(void)
{
    char *p = calloc(1, 500); // LEAK A
    struct node *one = calloc(1, sizeof *one), *two = calloc(1, sizeof *two); // LEAK B
    one->next = two;
    *(struct node **)p = one;
    cursor = p + 300;
    FIX(free(one); free(two); free(p); cursor = NULL;)
    one = two = hide(NULL);
    p = hide(NULL);
    wipe();
    return 0;
}
