// quads [threads=T] [depth=D] [rounds=N] [limit=KIB]
//
// Quadtrees: nodes of four references and no fillers. A tree of depth D stays. N times a random
// subtree of half its depth is replaced, and N times a tree of that depth comes and goes. So dead
// objects lie in runs, and old nodes get references to new ones. (The idea is from Whippet's
// benchmark of that name.)

#include "threads.h"

struct quad {
    struct quad *part[4];
};

static size_t depth, rounds;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct quad *quad = object;
    for (int i = 0; i < 4; i++)
        door_mark(tracer, quad->part[i]);
}

static struct quad *quad_new(struct door *door, size_t levels) {
    struct quad *quad = door_new(door, sizeof *quad, DOOR_TRACED);
    if (levels != 0)
        for (int i = 0; i < 4; i++) {
            struct quad *part = quad_new(door, levels - 1);
            door_write(door, quad, (void **)&quad->part[i], part);
        }
    return quad;
}

static uint64_t count(const struct quad *quad) {
    if (quad == NULL)
        return 0;
    return 1 + count(quad->part[0]) + count(quad->part[1]) + count(quad->part[2]) + count(quad->part[3]);
}

static uint64_t nodes(size_t levels) { return levels == 0 ? 1 : 1 + 4 * nodes(levels - 1); }

static uint64_t work(struct door *door, size_t thread) {
    uint64_t random = thread + 1, sum = 0;
    size_t half = depth / 2;
    struct quad *tree = quad_new(door, depth);
    for (size_t i = 0; i < rounds; i++) {
        struct quad *at = tree;
        for (size_t level = 0; level + 1 < depth - half; level++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at = at->part[random >> 62];
        }
        struct quad *part = quad_new(door, half);
        door_write(door, at, (void **)&at->part[i % 4], part);
        sum += quad_new(door, half)->part[0] != NULL;
    }
    if (count(tree) != nodes(depth))
        die(1, "the tree is not whole");
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("quads", argc, argv);
    size_t threads = threads_setting();
    depth = setting("depth", 9, 2, 12);
    rounds = setting("rounds", 20000, 1, 1 << 30);
    load_run(threads, limit_setting(0), work);
    object_field(threads * (nodes(depth) + 2 * rounds * nodes(depth / 2)));
    return door_end();
}
