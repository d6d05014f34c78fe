// pauses [live=KIB] [turnover=PERCENT] [budget=NS] [incremental=1] [layout=...] ...
//
// Measures how long a program with much memory waits for the collector. LIVE KiB are built and
// stay: a table of rows of nodes, each with a string. Then TURNOVER percent of the nodes are
// replaced, one by one, at random places.
//
//   table (one large object) --> rows of 64 --> node --> its row
//                                                 \----> string of 16 to 200 bytes
//
// With incremental=1 the program reports stores. It calls hw_gc_step(BUDGET) after every 64
// replacements, as a game or an editor would in its idle time. A call that did work is a pause. So
// are the replacements between two calls, whose allocations may do a step, too. Both are measured
// in the thread's processor time:
//
//   step_p50 ... step_most    the calls
//   batch_p50 ... batch_most  64 replacements, the work itself included
//
// With incremental=0 there are no such calls, and collections stop the world. The ratio of the two
// times is the cost of the short pauses.

#include "door_heapwright.h"
#include "percentiles.h"

enum { ROW = 64, BATCH = 64, LEAST_STRING = 16, MORE_STRING = 185, MOST_PAUSES = 4000000 };

// A row, the table or a node: its references come last. A node has two.
struct list {
    size_t count;
    void *items[];
};

static size_t live, turnover, budget;
static bool incremental;
static hw_gc_mutator *mutator;
static uint64_t randoms;
static struct numbers steps, batches;
static uint64_t steady_ns, steady_cpu;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct list *list = object;
    if (list->count <= 2) {
        hw_gc_mark(tracer, list->items[0]);
        hw_gc_mark(tracer, list->items[1]);
    } else {
        hw_gc_mark_range(tracer, list->items, list->count);
    }
}

static void *made(size_t size, uint32_t kind) {
    void *object = hw_gc_new(mutator, size, kind);
    if (__builtin_expect(object == NULL, 0))
        die(3, "out of memory");
    return object;
}

static struct list *list_new(size_t count) {
    struct list *list = made(sizeof *list + count * sizeof(void *), HW_GC_TRACED);
    list->count = count;
    return list;
}

// Puts a new node into a row; returns its bytes with its string.
static size_t replace(struct list *row, size_t at) {
    struct list *node = list_new(2);
    size_t length = LEAST_STRING + next_random(&randoms) % MORE_STRING;
    char *string = made(length, HW_GC_LEAF);
    *(uint64_t *)string = length;
    hw_gc_write(mutator, node, &node->items[0], row);
    hw_gc_write(mutator, node, &node->items[1], string);
    hw_gc_write(mutator, row, &row->items[at], node);
    return sizeof *node + 2 * sizeof(void *) + length;
}

// Batches of replacements, and a step after each.
static void turn_over(struct list *table, size_t wanted) {
    uint64_t before = thread_ns();
    for (size_t bytes = 0; bytes < wanted;) {
        for (size_t i = 0; i < BATCH; i++) {
            uint64_t r = next_random(&randoms);
            bytes += replace(table->items[(r >> 8) % table->count], r % ROW);
        }
        uint64_t after = thread_ns();
        numbers_add(&batches, after - before);
        before = after;
        if (!incremental || !hw_gc_owed(mutator))
            continue;
        hw_gc_step(mutator, budget);
        after = thread_ns();
        numbers_add(&steps, after - before);
        before = after;
    }
}

static __attribute__((noinline)) uint64_t work(void) {
    randoms = stream(6);
    size_t average = LEAST_STRING + MORE_STRING / 2 + sizeof(struct list) + 3 * sizeof(void *);
    size_t rows = live / (average * ROW) + 1;
    struct list *table = list_new(rows);
    for (size_t i = 0; i < rows; i++) {
        struct list *row = list_new(ROW);
        hw_gc_write(mutator, table, &table->items[i], row);
        for (size_t n = 0; n < ROW; n++)
            replace(row, n);
    }
    uint64_t wall = now_ns(), cpu = thread_ns();
    turn_over(table, live / 100 * turnover);
    steady_ns = now_ns() - wall;
    steady_cpu = thread_ns() - cpu;
    uint64_t sum = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t n = 0; n < ROW; n++) {
            struct list *row = table->items[i], *node = row->items[n];
            if (node->items[0] != row)
                die(1, "a node was overwritten");
            sum += *(uint64_t *)node->items[1] * (i + n + 1);
        }
    return sum;
}

int main(int argc, char **argv) {
    settings_begin("pauses", argc, argv);
    hw_gc_options options = door_options();
    incremental = options.incremental;
    live = setting("live", 1 << 20, 64, SIZE_MAX >> 10) << 10;
    turnover = setting("turnover", 400, 1, 100000);
    budget = setting("budget", 500000, 1000, 1000000000);
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = door_trace };
    steps = numbers_new(MOST_PAUSES);
    batches = numbers_new(live / 100 * turnover / (BATCH * (LEAST_STRING + sizeof(struct list))) + 1);
    begin();
    door_heap_new(&options, &runtime);
    mutator = hw_gc_attach(door_heap);
    if (mutator == NULL)
        die(3, "out of memory");
    hw_gc_scan_stack(mutator, __builtin_frame_address(0));
    uint64_t sum = work();
    result_begin(sum);
    field("steady_ns", steady_ns);
    field("steady_cpu", steady_cpu);
    field("pauses", steps.count);
    numbers_fields("step", &steps);
    numbers_fields("batch", &batches);
    return door_end();
}
