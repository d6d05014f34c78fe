// leaks: definite 1 32 at A in push with 5 5*32
// leaks: reachable 4 4*32 at A in push
// A list of ten is cut to four: the first of what was cut off is lost, and the rest with it.
#include "corpus.h"

struct node { struct node *next; long id[3]; };
struct node *head;

NOINLINE void push(void)
{
    struct node *n = calloc(1, sizeof *n); // LEAK A
    n->next = head;
    head = n;
}

NOINLINE void cut(int keep)
{
    struct node *n = head;
    while (--keep > 0)
        n = n->next;
    FIX(for (struct node *gone = n->next; gone != NULL;) { struct node *next = gone->next; free(gone); gone = next; })
    n->next = NULL;
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        push();
    cut(4);
    return 0;
}
