// gcbench [threads=T] [depth=D] [limit=KIB]
//
// GCBench, by Ellis, Kovac and Boehm: binary trees of many lifetimes. A tree of depth D stretches
// the heap and is dropped. A tree of depth D - 2 and an array of numbers stay to the end. Then
// trees of every second depth up to D - 2 come and go, with the same work at each depth. Half of
// them are built from the top down (a store into an old node), half from the bottom up (a store
// into a new node).
//
// The program reads only the trees, so it measures allocation, marking of small linked objects,
// and sweeping. Each thread has its own trees, on one heap.

#include "threads.h"

enum { LEAST_DEPTH = 4 };

struct node {
    struct node *left, *right;
    int i, j;
};

static size_t most_depth;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct node *node = object;
    door_mark(tracer, node->left);
    door_mark(tracer, node->right);
}

static struct node *node_new(struct door *door, struct node *left, struct node *right) {
    struct node *node = door_new(door, sizeof *node, DOOR_TRACED);
    if (left != NULL)
        door_write(door, node, (void **)&node->left, left);
    if (right != NULL)
        door_write(door, node, (void **)&node->right, right);
    return node;
}

static void populate(struct door *door, size_t depth, struct node *node) {
    if (depth == 0)
        return;
    door_write(door, node, (void **)&node->left, node_new(door, NULL, NULL));
    door_write(door, node, (void **)&node->right, node_new(door, NULL, NULL));
    populate(door, depth - 1, node->left);
    populate(door, depth - 1, node->right);
}

static struct node *tree_new(struct door *door, size_t depth) {
    if (depth == 0)
        return node_new(door, NULL, NULL);
    struct node *left = tree_new(door, depth - 1);
    struct node *right = tree_new(door, depth - 1);
    return node_new(door, left, right);
}

static uint64_t count(const struct node *node) {
    return node == NULL ? 0 : 1 + count(node->left) + count(node->right);
}

// The nodes of a tree.
static size_t nodes(size_t depth) { return ((size_t)2 << depth) - 1; }

static uint64_t short_lived(struct door *door, size_t depth) {
    uint64_t sum = 0;
    size_t times = 2 * nodes(most_depth) / nodes(depth);
    for (size_t i = 0; i < times; i++) {
        struct node *tree = node_new(door, NULL, NULL);
        populate(door, depth, tree);
        // A small part of each tree, as proof that it exists.
        sum += tree->left->right != NULL;
    }
    for (size_t i = 0; i < times; i++) {
        struct node *tree = tree_new(door, depth);
        sum += tree->right->left != NULL;
    }
    return sum;
}

// Out of line, so that no frame keeps the tree.
static __attribute__((noinline)) uint64_t stretch(struct door *door) { return count(tree_new(door, most_depth)); }

static uint64_t work(struct door *door, size_t thread) {
    uint64_t sum = stretch(door);
    size_t kept = most_depth - 2;
    struct node *tree = node_new(door, NULL, NULL);
    populate(door, kept, tree);
    size_t length = (size_t)1 << (most_depth + 1);
    double *array = door_new(door, length * sizeof *array, DOOR_LEAF);
    for (size_t i = 0; i < length; i++)
        array[i] = 1.0 / (double)(i + 1);
    for (size_t depth = LEAST_DEPTH; depth <= kept; depth += 2)
        sum += short_lived(door, depth);
    for (size_t i = 0; i < length; i++)
        if (array[i] != 1.0 / (double)(i + 1))
            die(1, "the array was overwritten");
    if (count(tree) != nodes(kept))
        die(1, "the long-lived tree is not whole");
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("gcbench", argc, argv);
    size_t threads = threads_setting();
    most_depth = setting("depth", 20, LEAST_DEPTH + 2, 28);
    load_run(threads, limit_setting(0), work);
    return door_end();
}
