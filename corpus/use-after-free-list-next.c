// finds: use-after-free
// words: 24-byte
// needs: guard=all
// for (n = head; n; n = n->next) free(n);
#include "corpus.h"

struct node { struct node *next; long id, pad; };

int main(void)
{
    struct node *head = NULL;
    for (int i = 0; i < 5; i++) {
        struct node *n = calloc(1, sizeof *n);
        n->next = head;
        head = n;
    }
    for (struct node *n = head; n;) {
        struct node *next = n->next;
        free(hide(n));
        BUG(next = ((volatile struct node *)hide(n))->next;)
        n = next;
    }
    return 0;
}
