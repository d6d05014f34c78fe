// fillers [threads=T] [depth=D] [fillers=0|1] [limit=KIB]
//
// Nodes among fillers: binary trees whose nodes lie among dropped objects, of sizes by a power law.
// So pages have nodes that stay, beside holes that come and go. The idea is from Whippet's
// benchmark (Wingo), which took GCBench's trees (Ellis, Kovac, Boehm).
//
// A tree of depth D and an array of numbers stay to the end. Then trees of depths 4, 6 ... D come
// and go, with the same work at each depth. Half of them are built from the top down (a store into
// an old node), half from the bottom up (a store into a new node). The number of fillers before
// each node follows a geometric law: 6 on average, and none before one node in seven. fillers=0
// leaves them out.
//
// The field `objects` is the number of objects, with a thread's share of fillers.

#include "threads.h"

enum { LEAST_DEPTH = 4, NUMBERS = 500000 };

struct node {
    uint64_t head;
    struct node *left, *right;
    int i, j;
};

struct filler {
    uint64_t head, words;
    void *word[];
};

// The state of a thread, which decides the next filler.
struct maker {
    struct door *door;
    uint64_t random, objects;
};

static size_t most_depth;
static bool has_fillers;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct node *node = object;
    if (node->head == 1) {
        door_mark(tracer, node->left);
        door_mark(tracer, node->right);
        return;
    }
    struct filler *filler = object;
    for (uint64_t i = 0; i < filler->words; i++)
        door_mark(tracer, filler->word[i]);
}

// The length of a series of events that continues six times in seven.
static inline size_t power_law(struct maker *maker) {
    size_t many = 0;
    do {
        maker->random = maker->random * 6364136223846793005u + 1442695040888963407u;
    } while ((maker->random >> 32) * 7 >> 32 != 0 && ++many < 64);
    return many;
}

static inline void fill(struct maker *maker) {
    if (!has_fillers)
        return;
    size_t words = power_law(maker);
    if (words == 0)
        return;
    maker->objects++;
    struct filler *filler = door_new(maker->door, sizeof *filler + words * sizeof(void *), DOOR_TRACED);
    filler->head = 2;
    filler->words = words;
}

static inline struct node *node_new(struct maker *maker) {
    maker->objects++;
    struct node *node = door_new(maker->door, sizeof *node, DOOR_TRACED);
    node->head = 1;
    return node;
}

static void populate(struct maker *maker, size_t depth, struct node *node) {
    if (depth == 0)
        return;
    fill(maker);
    struct node *left = node_new(maker);
    fill(maker);
    struct node *right = node_new(maker);
    door_write(maker->door, node, (void **)&node->left, left);
    door_write(maker->door, node, (void **)&node->right, right);
    node->j = (int)depth;
    populate(maker, depth - 1, left);
    populate(maker, depth - 1, right);
}

static struct node *tree_new(struct maker *maker, size_t depth) {
    if (depth == 0)
        return node_new(maker);
    struct node *left = tree_new(maker, depth - 1);
    struct node *right = tree_new(maker, depth - 1);
    fill(maker);
    struct node *node = node_new(maker);
    door_write(maker->door, node, (void **)&node->left, left);
    door_write(maker->door, node, (void **)&node->right, right);
    node->j = (int)depth;
    return node;
}

static uint64_t count(const struct node *node) {
    return node == NULL ? 0 : 1 + count(node->left) + count(node->right);
}

// The nodes of a tree.
static size_t nodes(size_t depth) { return ((size_t)2 << depth) - 1; }

static uint64_t objects_made;

static uint64_t work(struct door *door, size_t thread) {
    struct maker maker = { door, thread + 1, 0 };
    uint64_t sum = 0;
    struct node *kept = node_new(&maker);
    populate(&maker, most_depth, kept);
    double *array = door_new(door, NUMBERS * sizeof *array, DOOR_LEAF);
    for (size_t i = 0; i < NUMBERS / 2; i++)
        array[i] = 1.0 / (double)(i + 1);
    for (size_t depth = LEAST_DEPTH; depth <= most_depth; depth += 2) {
        size_t times = 2 * nodes(most_depth + 2) / nodes(depth);
        for (size_t i = 0; i < times; i++) {
            struct node *tree = node_new(&maker);
            populate(&maker, depth, tree);
            sum += tree->left->right != NULL;
        }
        for (size_t i = 0; i < times; i++) {
            struct node *tree = tree_new(&maker, depth);
            sum += tree->right->left != NULL;
        }
    }
    for (size_t i = 0; i < NUMBERS / 2; i++)
        if (array[i] != 1.0 / (double)(i + 1))
            die(1, "the array was overwritten");
    if (count(kept) != nodes(most_depth))
        die(1, "the long-lived tree is not whole");
    __atomic_fetch_add(&objects_made, maker.objects, __ATOMIC_RELAXED);
    return sum;
}

int main(int argc, char **argv) {
    settings_begin("fillers", argc, argv);
    size_t threads = threads_setting();
    most_depth = setting("depth", 16, LEAST_DEPTH, 24);
    has_fillers = setting("fillers", 1, 0, 1);
    // A limit may be a percentage of the live bytes: each thread's tree of depth D, and array.
    size_t live = threads * (2 * nodes(most_depth) * sizeof(struct node) + NUMBERS * sizeof(double));
    size_t limit = limit_setting(0);
    size_t times = setting("percent", 0, 0, 10000);
    door_open(times != 0 ? live / 100 * times : limit);
    begin();
    // (The sum of one thread: all threads have the same sum.)
    result_begin(workers_run(threads, work) / threads);
    object_field(objects_made);
    return door_end();
}
