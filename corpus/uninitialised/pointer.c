// finds: end
// The last node's next is not set.
#include "../corpus.h"

struct node {
    int value;
    struct node *next;
};

int main(void)
{
    struct node *list = NULL;
    for (int i = 0; i < 3; i++) {
        struct node *node = malloc(sizeof *node);
        node->value = i;
        if (list != NULL FIX(|| 1))
            node->next = list;
        list = node;
    }
    int sum = 0;
    for (struct node *node = hide(list); node != NULL; node = node->next)
        sum += node->value;
    printf("%d\n", sum);
    while (list != NULL) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
    return 0;
}
