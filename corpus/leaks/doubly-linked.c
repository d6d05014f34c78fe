// leaks: definite 1 24 at A in append with 9 9*24
// lsan: differs It calls all that lead to each other indirectly lost, and nothing directly.
// A list with links both ways: each node is led to by its neighbours.
#include "corpus.h"

struct node { struct node *next, *prev; long id; };
struct node *head, *tail;

NOINLINE void append(long id)
{
    struct node *n = calloc(1, sizeof *n); // LEAK A
    n->id = id;
    n->prev = tail;
    if (tail != NULL)
        tail->next = n;
    else
        head = n;
    tail = n;
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        append(i);
    FIX(while (head != NULL) { struct node *next = head->next; free(head); head = next; })
    head = tail = NULL;
    wipe();
    return 0;
}
