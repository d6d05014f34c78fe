// finds: double-free
// words: 24-byte
// A node is in the list of free connections twice.
#include "corpus.h"

struct node { struct node *next; long id, pad; };

int main(void)
{
    struct node *nodes[5];
    for (int i = 0; i < 5; i++)
        nodes[i] = calloc(1, sizeof *nodes[i]);
    BUG(free(hide(nodes[4])); nodes[4] = nodes[2];)
    for (int i = 0; i < 5; i++)
        free(hide(nodes[i]));
    return 0;
}
