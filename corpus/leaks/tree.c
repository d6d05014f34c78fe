// leaks: definite 1 SIZE at A in grow from ROOT with 30 30*SIZE
// leaks: indirect 30 30*SIZE at A in grow
// sizes: 24 3000
// A tree is dropped at its root.
#include "corpus.h"

struct node { struct node *left, *right; };

NOINLINE struct node *grow(int depth)
{
    if (depth == 0)
        return NULL;
    struct node *n = malloc(SIZE); // LEAK A
    n->left = grow(depth - 1);
    n->right = grow(depth - 1);
    return n;
}

NOINLINE void fell(struct node *n)
{
    if (n == NULL)
        return;
    fell(n->left);
    fell(n->right);
    free(n);
}

int main(void)
{
    struct node *root = grow(5); // LEAK ROOT
    FIX(fell(root);)
    POKE(&root, 0);
    wipe();
    return 0;
}
