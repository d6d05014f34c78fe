// compact [objects=N] [keep=PERCENT] [budget=NS] [stores=N] [incremental=1] [generations=1]
//         [layout=...] ...
//
// N objects of mixed sizes. All but KEEP percent are dropped, at random: the others lie thinly in
// all pages. Then the heap is compacted in steps of BUDGET nanoseconds. Between two steps the
// program continues: STORES references change, and as many objects are made.
//
//   table (one large object) --> rows of 1000 --> node --> up to three other nodes, any
//                                                  \----> numbers, 8 to 200 bytes (a leaf)
//
// heap_before, heap_after   bytes of pages, before and after; live_after: bytes of live objects
// step_p50 ... step_most    the steps, in the thread's processor time; wall_most: by the clock

#include "door_heapwright.h"
#include "percentiles.h"

enum { ROW = 1000, EDGES = 3, LEAST_LEAF = 8, MORE_LEAF = 193, MOST_STEPS = 4000000 };

struct list {
    size_t count;
    void *items[];
};

struct node {
    size_t count; // EDGES + 1
    void *leaf;
    void *edges[EDGES];
    uint64_t serial;
};

static size_t objects, keep, budget, stores;
static hw_gc_mutator *mutator;
static void **root;
static uint64_t randoms;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct list *list = object;
    if (list->count > EDGES + 1)
        hw_gc_mark_range(tracer, list->items, list->count);
    else
        for (size_t i = 0; i < list->count; i++)
            hw_gc_mark_slot(tracer, &list->items[i]);
}

static void *made(size_t size, uint32_t kind) {
    void *object = hw_gc_new(mutator, size, kind);
    if (__builtin_expect(object == NULL, 0))
        die(3, "out of memory");
    return object;
}

// Objects move at any allocation, so each access starts from the root.
static struct list *row(size_t n) { return ((struct list *)*root)->items[n / ROW]; }

static struct node *node(size_t n) { return row(n)->items[n % ROW]; }

static void put(size_t n, uint64_t serial) {
    struct node *fresh = made(sizeof *fresh, HW_GC_TRACED);
    fresh->count = EDGES + 1;
    fresh->serial = serial;
    hw_gc_write(mutator, row(n), &row(n)->items[n % ROW], fresh);
    size_t length = LEAST_LEAF + next_random(&randoms) % MORE_LEAF;
    uint64_t *leaf = made(length, HW_GC_LEAF);
    *leaf = serial * 7;
    hw_gc_write(mutator, node(n), &node(n)->leaf, leaf);
}

static void link_some(size_t n, size_t among) {
    struct node *from = node(n), *to = node(next_random(&randoms) % among);
    if (from != NULL && to != NULL)
        hw_gc_write(mutator, from, &from->edges[next_random(&randoms) % EDGES], to);
}

static size_t pages(const hw_gc_statistics *told) { return told->in_use_bytes + told->empty_bytes + told->large_bytes; }

static uint64_t checked(size_t nodes) {
    uint64_t sum = 0;
    for (size_t n = 0; n < nodes; n++) {
        struct node *one = node(n);
        if (one == NULL)
            continue;
        if (*(uint64_t *)one->leaf != one->serial * 7)
            die(1, "a leaf was overwritten");
        for (size_t i = 0; i < EDGES; i++) {
            struct node *other = one->edges[i];
            if (other != NULL && *(uint64_t *)other->leaf != other->serial * 7)
                die(1, "a reference leads astray");
            sum += other == NULL ? 0 : other->serial;
        }
        sum += one->serial;
    }
    return sum;
}

int main(int argc, char **argv) {
    settings_begin("compact", argc, argv);
    hw_gc_options options = door_options();
    objects = setting("objects", 2000000, 4000, 100000000);
    keep = setting("keep", 10, 1, 100);
    budget = setting("budget", 500000, 1000, 1000000000);
    stores = setting("stores", 20, 0, 1000000);
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = door_trace };
    struct numbers steps = numbers_new(MOST_STEPS);
    begin();
    door_heap_new(&options, &runtime);
    mutator = hw_gc_attach(door_heap);
    if (mutator == NULL || (root = hw_gc_root_new(mutator, NULL)) == NULL)
        die(3, "out of memory");
    randoms = stream(8);
    // Every second object is a leaf.
    size_t nodes = objects / 2 / ROW * ROW, rows = nodes / ROW;
    struct list *table = made(sizeof *table + rows * sizeof(void *), HW_GC_TRACED);
    table->count = rows;
    *root = table;
    for (size_t i = 0; i < rows; i++) {
        struct list *fresh = made(sizeof *fresh + ROW * sizeof(void *), HW_GC_TRACED);
        fresh->count = ROW;
        table = *root;
        hw_gc_write(mutator, table, &table->items[i], fresh);
        for (size_t n = i * ROW; n < (i + 1) * ROW; n++) {
            put(n, n);
            link_some(n, (i + 1) * ROW);
        }
    }
    for (size_t n = 0; n < nodes; n++)
        if (next_random(&randoms) % 100 >= keep)
            hw_gc_write(mutator, row(n), &row(n)->items[n % ROW], NULL);
    // The remaining objects lead only to each other.
    for (size_t n = 0; n < nodes; n++)
        for (size_t i = 0; node(n) != NULL && i < EDGES; i++)
            hw_gc_write(mutator, node(n), &node(n)->edges[i], NULL);
    for (size_t n = 0; n < 3 * nodes; n++)
        link_some(n % nodes, nodes);
    uint64_t sum = checked(nodes);
    hw_gc_statistics before, after;
    hw_gc_collect(mutator);
    hw_gc_stats(door_heap, &before, sizeof before);
    size_t resident_before = resident_now();
    uint64_t wall_most = 0, began = now_ns(), cpu_began = thread_ns();
    hw_gc_ask_compact(mutator);
    for (bool over = false; !over;) {
        uint64_t wall = now_ns(), cpu = thread_ns();
        over = hw_gc_step(mutator, budget);
        numbers_add(&steps, thread_ns() - cpu);
        wall = now_ns() - wall;
        wall_most = wall > wall_most ? wall : wall_most;
        // The sum stays the same: new objects are garbage, and stored references are old.
        for (size_t i = 0; i < stores; i++) {
            struct node *one = node(next_random(&randoms) % nodes);
            *(uint64_t *)made(LEAST_LEAF + next_random(&randoms) % MORE_LEAF, HW_GC_LEAF) = 0;
            if (one == NULL)
                continue;
            size_t at = next_random(&randoms) % EDGES, to = next_random(&randoms) % EDGES;
            void *kept = one->edges[at];
            hw_gc_write(mutator, one, &one->edges[at], one->edges[to]);
            hw_gc_write(mutator, one, &one->edges[to], kept);
        }
    }
    uint64_t took = now_ns() - began, cpu_took = thread_ns() - cpu_began;
    hw_gc_trim(door_heap);
    hw_gc_stats(door_heap, &after, sizeof after);
    size_t resident_after = resident_now();
    if (checked(nodes) != sum)
        die(1, "the graph is another one");
    result_begin(sum);
    field("heap_before", pages(&before));
    field("heap_after", pages(&after));
    field("live_after", after.live_bytes);
    field("resident_before", resident_before);
    field("resident_after", resident_after);
    field("compacting_ns", took);
    field("compacting_cpu", cpu_took);
    field("moved", after.moved_objects);
    field("evacuated", after.evacuated_pages);
    field("kept_pages", after.kept_pages);
    field("steps", steps.count);
    field("wall_most", wall_most);
    numbers_fields("step", &steps);
    return door_end();
}
