// tree KEYS ROUNDS: builds an unbalanced search tree from random keys, each
// node with a short text of its own, looks every key up, walks it in order,
// and frees it. Stands for symbol tables, ordered maps and syntax trees: here
// the *placement* of blocks, not the speed of the calls, decides.

#include "workload.h"

struct node {
    struct node *left, *right;
    uint64_t key;
    char *text;
};

static uint64_t walk(const struct node *node) {
    uint64_t sum = 0;
    while (node != NULL) {
        sum += walk(node->left) + (unsigned char)node->text[0];
        node = node->right;
    }
    return sum;
}

static void drop(struct node *node) {
    while (node != NULL) {
        struct node *right = node->right;
        drop(node->left);
        free(node->text);
        free(node);
        node = right;
    }
}

int main(int argc, char **argv) {
    long keys = argc > 1 ? atol(argv[1]) : 200000;
    long rounds = argc > 2 ? atol(argv[2]) : 2;
    uint64_t check = 0;
    double start = now_ns();
    for (long r = 0; r < rounds; r++) {
        struct node *root = NULL;
        uint64_t random = 99 + (uint64_t)r;
        for (long i = 0; i < keys; i++) {
            uint64_t key = next_random(&random);
            struct node **at = &root;
            while (*at != NULL)
                at = key < (*at)->key ? &(*at)->left : &(*at)->right;
            struct node *node = must(malloc(sizeof *node));
            size_t length = 8 + key % 33;
            *node = (struct node){NULL, NULL, key, must(malloc(length))};
            memset(node->text, (int)(key & 127), length);
            *at = node;
        }
        random = 99 + (uint64_t)r;
        for (long i = 0; i < keys; i++) {
            uint64_t key = next_random(&random);
            const struct node *node = root;
            while (node->key != key)
                node = key < node->key ? node->left : node->right;
            check += (unsigned char)node->text[0];
        }
        check -= walk(root);
        drop(root);
    }
    if (check != 0) {
        fprintf(stderr, "the walk and the look-ups disagree\n");
        return 1;
    }
    report("ms/round", (now_ns() - start) / 1e6 / rounds);
    return 0;
}
