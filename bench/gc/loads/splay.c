// splay [threads=T] [size=N] [rounds=R] [limit=KIB]
//
// The splay load of V8's benchmarks: a self-adjusting tree of N nodes under random keys. Each node
// has a payload, a tree of depth 5, with an array of ten small numbers and a string in each leaf. A
// round inserts 80 new nodes, and for each removes the greatest node with a smaller key.
//
//   node --> branch --> branch --> ... --> leaf --> array of ten tagged numbers
//   node --> ...    --> ...                     --> string (no references: a leaf of the heap)
//
// Most of the heap stays and is linked, and the tree's references change all the time: marking and
// stores are its costs. Each thread has its own tree, on one heap.

#include "threads.h"

enum { MODIFIED = 80, PAYLOAD_DEPTH = 5, NUMBERS = 10 };
enum tag { NODE = 1, BRANCH, LEAF, ARRAY };

struct node {
    uint64_t tag;
    uint64_t key;
    struct node *left, *right;
    void *value;
};

struct branch {
    uint64_t tag;
    void *left, *right;
};

struct leaf {
    uint64_t tag;
    struct array *array;
    char *string;
};

// Small numbers as a runtime has them: with the lowest bit set, beside references.
struct array {
    uint64_t tag;
    uint64_t values[NUMBERS];
};

static size_t tree_size, rounds;

static inline void load_trace(door_tracer *tracer, void *object) {
    switch (*(uint64_t *)object) {
    case NODE: {
        struct node *node = object;
        door_mark(tracer, node->left);
        door_mark(tracer, node->right);
        door_mark(tracer, node->value);
        break;
    }
    case BRANCH: {
        struct branch *branch = object;
        door_mark(tracer, branch->left);
        door_mark(tracer, branch->right);
        break;
    }
    case LEAF: {
        struct leaf *leaf = object;
        door_mark(tracer, leaf->array);
        door_mark(tracer, leaf->string);
        break;
    }
    case ARRAY: {
        struct array *array = object;
        for (size_t i = 0; i < NUMBERS; i++)
            if ((array->values[i] & 1) == 0)
                door_mark(tracer, (void *)array->values[i]);
        break;
    }
    }
}

static struct leaf *leaf_new(struct door *door, uint64_t key) {
    struct leaf *leaf = door_new(door, sizeof *leaf, DOOR_TRACED);
    leaf->tag = LEAF;
    struct array *array = door_new(door, sizeof *array, DOOR_TRACED);
    array->tag = ARRAY;
    door_write(door, leaf, (void **)&leaf->array, array);
    for (uint64_t i = 0; i < NUMBERS; i++)
        array->values[i] = i << 1 | 1;
    char text[64];
    // Writes the text by hand, in the script's form: a printf would take half of the time.
    static const char head[] = "String for key ", tail[] = " in leaf node";
    size_t at = sizeof head - 1;
    memcpy(text, head, at);
    for (unsigned digit = 0; digit < 16; digit++)
        text[at++] = "0123456789abcdef"[key >> (60 - 4 * digit) & 15];
    memcpy(text + at, tail, sizeof tail);
    at += sizeof tail;
    char *string = door_new(door, at, DOOR_LEAF);
    memcpy(string, text, at);
    door_write(door, leaf, (void **)&leaf->string, string);
    return leaf;
}

static void *payload(struct door *door, unsigned depth, uint64_t key) {
    if (depth == 0)
        return leaf_new(door, key);
    struct branch *branch = door_new(door, sizeof *branch, DOOR_TRACED);
    branch->tag = BRANCH;
    door_write(door, branch, &branch->left, payload(door, depth - 1, key));
    door_write(door, branch, &branch->right, payload(door, depth - 1, key));
    return branch;
}

// Brings the node with the key, or a neighbour of its place, to the root: Sleator and Tarjan's
// top-down splay. `heads` has the left tree's root at its right, and the right tree's at its left.
// `heads` is an object, because no other reference keeps these trees.
static struct node *splay(struct door *door, struct node *heads, struct node *root, uint64_t key) {
    if (root == NULL)
        return NULL;
    struct node *left = heads, *right = heads, *current = root;
    heads->left = heads->right = NULL;
    for (;;) {
        if (key < current->key) {
            if (current->left == NULL)
                break;
            if (key < current->left->key) {
                struct node *child = current->left;
                door_write(door, current, (void **)&current->left, child->right);
                door_write(door, child, (void **)&child->right, current);
                current = child;
                if (current->left == NULL)
                    break;
            }
            door_write(door, right, (void **)&right->left, current);
            right = current;
            current = current->left;
        } else if (key > current->key) {
            if (current->right == NULL)
                break;
            if (key > current->right->key) {
                struct node *child = current->right;
                door_write(door, current, (void **)&current->right, child->left);
                door_write(door, child, (void **)&child->left, current);
                current = child;
                if (current->right == NULL)
                    break;
            }
            door_write(door, left, (void **)&left->right, current);
            left = current;
            current = current->right;
        } else {
            break;
        }
    }
    door_write(door, left, (void **)&left->right, current->left);
    door_write(door, right, (void **)&right->left, current->right);
    door_write(door, current, (void **)&current->left, heads->right);
    door_write(door, current, (void **)&current->right, heads->left);
    return current;
}

// Inserts a new node, unless the key exists.
static struct node *insert(struct door *door, struct node *heads, struct node *root, uint64_t key) {
    root = splay(door, heads, root, key);
    if (root != NULL && root->key == key)
        return root;
    void *value = payload(door, PAYLOAD_DEPTH, key);
    struct node *node = door_new(door, sizeof *node, DOOR_TRACED);
    node->tag = NODE;
    node->key = key;
    door_write(door, node, &node->value, value);
    if (root == NULL)
        return node;
    if (key > root->key) {
        door_write(door, node, (void **)&node->left, root);
        door_write(door, node, (void **)&node->right, root->right);
        door_write(door, root, (void **)&root->right, NULL);
    } else {
        door_write(door, node, (void **)&node->right, root);
        door_write(door, node, (void **)&node->left, root->left);
        door_write(door, root, (void **)&root->left, NULL);
    }
    return node;
}

// Removes the greatest node whose key is at most `key`, or the least of all.
static struct node *take_out(struct door *door, struct node *heads, struct node *root, uint64_t key) {
    root = splay(door, heads, root, key);
    if (root->key > key && root->left != NULL) {
        struct node *below = root->left;
        while (below->right != NULL)
            below = below->right;
        root = splay(door, heads, root, below->key);
    }
    if (root->left == NULL)
        return root->right;
    struct node *right = root->right;
    struct node *left = splay(door, heads, root->left, root->key);
    door_write(door, left, (void **)&left->right, right);
    return left;
}

// A walk in order, without a stack: the tree may be a list. Splaying the next key moves the root
// through it. Returns the number of nodes, and reads each.
static uint64_t look(struct door *door, struct node *heads, struct node *root, size_t *found) {
    uint64_t sum = 0;
    *found = 0;
    root = splay(door, heads, root, 0);
    while (root != NULL) {
        void *at = root->value;
        while (*(uint64_t *)at == BRANCH)
            at = ((struct branch *)at)->right;
        struct leaf *leaf = at;
        sum += root->key ^ leaf->array->values[NUMBERS - 1] ^ (uint64_t)leaf->string[15];
        ++*found;
        // The passed nodes are not needed any more.
        root = splay(door, heads, root->right, 0);
    }
    return sum;
}

static uint64_t work(struct door *door, size_t thread) {
    uint64_t random = stream(thread);
    struct node *heads = door_new(door, sizeof *heads, DOOR_TRACED);
    heads->tag = NODE;
    struct node *root = NULL;
    for (size_t i = 0; i < tree_size; i++)
        root = insert(door, heads, root, next_random(&random));
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < MODIFIED; i++) {
            uint64_t key = next_random(&random);
            root = insert(door, heads, root, key);
            root = take_out(door, heads, root, key - 1);
        }
    size_t found;
    uint64_t sum = look(door, heads, root, &found);
    if (found != tree_size)
        die(1, "the tree is not whole");
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("splay", argc, argv);
    size_t threads = threads_setting();
    tree_size = setting("size", 8000, 2, 10000000);
    rounds = setting("rounds", 1000, 1, 10000000);
    load_run(threads, limit_setting(0), work);
    return door_end();
}
