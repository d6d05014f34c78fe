// boot [classes=N] [collections=N] [layout=...] ...
//
// A pool that fills at boot and is then almost never allocated from: the classes of #18045. A
// collector that wants each pool to have free slots would grow it; this one may stay
// full. CLASSES objects of one width are made; then, COLLECTIONS times, objects of other
// widths come and go and everything is collected. Every hundredth time a class is
// replaced by another.
//
// After each collection the pool of that width is looked up in the statistics: the least share
// of its slots that was live, in ten thousandths, is the field `full`.

#include "door_heapwright.h"

enum { WIDTH = 208, OTHERS = 2000, REPLACED_EACH = 100 };

// Every traced object here is a list of references that ends with the object.
struct list {
    size_t count;
    void *items[];
};

static size_t classes, collections;
static hw_gc_mutator *mutator;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct list *list = object;
    hw_gc_mark_range(tracer, list->items, list->count);
}

static void *made(size_t size, uint32_t kind) {
    void *object = hw_gc_new(mutator, size, kind);
    if (object == NULL)
        die(3, "out of memory");
    return object;
}

static struct list *list_new(size_t count) {
    struct list *list = made(sizeof *list + count * sizeof(void *), HW_GC_TRACED);
    list->count = count;
    return list;
}

static struct list *class_new(void) { return list_new((WIDTH - sizeof(struct list)) / sizeof(void *)); }

// Objects of every width up to 1 KiB but those that share the classes' pool.
static __attribute__((noinline)) void others(uint64_t *random, size_t slot) {
    for (size_t i = 0; i < OTHERS; i++) {
        uint64_t r = next_random(random);
        size_t size = 16 + r % 1000;
        if (hw_gc_slot_size(door_heap, size) == slot)
            continue;
        if (r >> 63 == 0)
            made(size, HW_GC_LEAF);
        else
            list_new((size - sizeof(struct list)) / sizeof(void *));
    }
}

// Slots of the pool that are live, of 10,000.
static uint64_t full(size_t slot) {
    static hw_gc_statistics told;
    hw_gc_stats(door_heap, &told, sizeof told);
    for (size_t i = 0; i < told.pools && i < 64; i++)
        if (told.pool[i].slot_size == slot)
            return told.pool[i].slots == 0 ? 0 : told.pool[i].live * 10000 / told.pool[i].slots;
    die(1, "the statistics do not have the classes' pool");
}

static __attribute__((noinline)) uint64_t work(size_t slot) {
    uint64_t random = stream(5), least = 10000;
    struct list *all = list_new(classes);
    for (size_t i = 0; i < classes; i++)
        hw_gc_write(mutator, all, &all->items[i], class_new());
    for (size_t i = 1; i <= collections; i++) {
        others(&random, slot);
        if (i % REPLACED_EACH == 0)
            hw_gc_write(mutator, all, &all->items[next_random(&random) % classes], class_new());
        hw_gc_collect(mutator);
        uint64_t now = full(slot);
        least = now < least ? now : least;
    }
    for (size_t i = 0; i < classes; i++)
        if (((struct list *)all->items[i])->count != (WIDTH - sizeof(struct list)) / sizeof(void *))
            die(1, "a class was overwritten");
    return least;
}

int main(int argc, char **argv) {
    program_name = "boot";
    settings_begin(argc, argv);
    hw_gc_options options = door_options();
    classes = setting("classes", 20000, 1, 10000000);
    collections = setting("collections", 1000, 1, 10000000);
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = door_trace };
    begin();
    door_heap_new(&options, &runtime);
    mutator = hw_gc_attach(door_heap);
    if (mutator == NULL)
        die(3, "out of memory");
    hw_gc_scan_stack(mutator, __builtin_frame_address(0));
    uint64_t least = work(hw_gc_slot_size(door_heap, WIDTH));
    result_begin(classes + collections);
    field("full", least);
    door_fields();
    result_end();
    return 0;
}
