// leaks: definite 1 SIZE at A|B in main with 1 SIZE
// sizes: 24 3000 400000
// lsan: differs It calls both of a cycle indirectly lost, and nothing directly.
// Two blocks that lead to each other, and nothing else does.
#include "corpus.h"

struct node { struct node *other; };

int main(void)
{
    struct node *a = malloc(SIZE); // LEAK A
    struct node *b = malloc(SIZE); // LEAK B
    a->other = hide(b);
    b->other = hide(a);
    FIX(free(a); free(b);)
    a = b = hide(NULL);
    return 0;
}
