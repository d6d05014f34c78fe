/* Search trees that grow, lose nodes and are torn down: trees SCALE. A node is a block, and its
 * name is another block, as in a C program with many small structures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *left, *right;
    char *name;
    unsigned key, weight;
};

static unsigned state = 12345;
static unsigned draw(void)
{
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

static struct node *add(unsigned key)
{
    struct node *made = malloc(sizeof *made);
    char name[64];
    int length = snprintf(name, sizeof name, "node-%u-%.*s", key, (int)(key % 30), "abcdefghijklmnopqrstuvwxyzabcd");
    if (!made || !(made->name = malloc((size_t)length + 1)))
        abort();
    memcpy(made->name, name, (size_t)length + 1);
    made->left = made->right = NULL;
    made->key = key;
    made->weight = draw();
    return made;
}

static void split(struct node *tree, unsigned key, struct node **low, struct node **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (tree->key < key) {
        split(tree->right, key, &tree->right, high);
        *low = tree;
    } else {
        split(tree->left, key, low, &tree->left);
        *high = tree;
    }
}

static struct node *join(struct node *low, struct node *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->weight > high->weight) {
        low->right = join(low->right, high);
        return low;
    }
    high->left = join(low, high->left);
    return high;
}

static size_t drop(struct node *tree)
{
    if (!tree)
        return 0;
    size_t length = drop(tree->left) + strlen(tree->name) + drop(tree->right);
    free(tree->name);
    free(tree);
    return length;
}

int main(int count, char **words)
{
    int scale = count > 1 ? atoi(words[1]) : 1;
    size_t total = 0;
    for (int round = 0; round < scale; round++) {
        struct node *tree = NULL;
        for (int i = 0; i < 60000; i++) {
            unsigned key = draw() % 100000;
            struct node *low, *middle, *high;
            split(tree, key, &low, &high);
            split(high, key + 1, &middle, &high);
            /* An existing key is removed, a new one inserted. */
            if (middle)
                total += drop(middle), middle = NULL;
            else
                middle = add(key);
            tree = join(join(low, middle), high);
        }
        total += drop(tree);
    }
    printf("%zu\n", total);
    return 0;
}
