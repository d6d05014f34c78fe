// leaks: definite 1 SIZE at A in push with 9 9*SIZE
// leaks: indirect 9 9*SIZE at A in push
// sizes: 24 3000 400000
// A list is forgotten: its head is lost, and with it all that the head leads to.
#include "corpus.h"

struct node { struct node *next; };
struct node *head;

NOINLINE void push(void)
{
    struct node *n = malloc(SIZE); // LEAK A
    n->next = head;
    head = n;
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        push();
    FIX(while (head != NULL) { struct node *next = head->next; free(head); head = next; })
    head = NULL;
    wipe();
    return 0;
}
