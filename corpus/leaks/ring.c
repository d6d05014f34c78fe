// leaks: definite 1 48 at A in main with 49 49*48
// lsan: differs It calls all of a ring indirectly lost, and nothing directly.
// A ring of fifty; the pointer to it goes round once and is dropped.
#include "corpus.h"

struct node { struct node *next; char rest[40]; };

int main(void)
{
    struct node *first = NULL, *last = NULL;
    for (int i = 0; i < 50; i++) {
        struct node *n = calloc(1, sizeof *n); // LEAK A
        n->next = first;
        first = n;
        if (last == NULL)
            last = n;
    }
    last->next = first;
    FIX(last->next = NULL; while (first != NULL) { struct node *next = first->next; free(first); first = next; })
    return 0;
}
