// The interface to heapwright's collected heap.
//
// The heap is set up for throughput: collections stop the world (incremental=1 for others), and the
// target is the limit. So no collection happens before the heap is full, as with bdwgc. load_trace
// marks an object's references. Both collectors read the stacks word by word, so both keep the
// objects that stale words refer to.
//
// Settings of this interface: layout=, incremental=, generations=, step=, markers=, verify= (as in
// hw_gc_options), factor= (the heap's size in percent of the live bytes), begin= and least= (what a
// thread may allocate between two collections, in percent of the limit and in KiB).

#ifndef DOOR_HEAPWRIGHT_H
#define DOOR_HEAPWRIGHT_H

#include "result.h"
#include <heapwright_gc.h>

enum { DOOR_TRACED = HW_GC_TRACED, DOOR_LEAF = HW_GC_LEAF };

struct door {
    hw_gc_mutator mutator;
};

typedef hw_gc_tracer door_tracer;

static inline void load_trace(door_tracer *tracer, void *object);

static hw_gc_heap *door_heap;

static void door_trace(hw_gc_tracer *tracer, void *object, void *data) {
    (void)data;
    load_trace(tracer, object);
}

// The settings of a heap, for all programs here.
static inline hw_gc_options door_options(void) {
    static const char *const layouts[] = { "fine", "ruby", "powers", "single", NULL };
    static const hw_gc_layout layout[] = { HW_GC_LAYOUT_FINE, HW_GC_LAYOUT_RUBY, HW_GC_LAYOUT_POWERS, HW_GC_LAYOUT_SINGLE };
    return (hw_gc_options){
        .size = sizeof(hw_gc_options),
        .layout = layout[setting_choice("layout", layouts)],
        .factor_percent = (uint32_t)setting("factor", 0, 0, 1000000),
        .incremental = setting("incremental", 0, 0, 1),
        .generations = setting("generations", 0, 0, 1),
        .verify = (uint32_t)setting("verify", 0, 0, 7),
        .least = setting("least", 0, 0, SIZE_MAX >> 10) << 10,
        .most = setting("limit", 0, 0, SIZE_MAX >> 10) << 10,
        .step_ns = setting("step", 0, 0, 1000000000),
        .markers = (uint32_t)setting("markers", 0, 0, 64),
    };
}

// At the limit, due finalizers run before an object is refused.
static bool door_out_of_memory(hw_gc_mutator *mutator, size_t size, uint32_t kind, void *data) {
    (void)size;
    (void)kind;
    (void)data;
    return hw_gc_run_finalizers(mutator, SIZE_MAX) > 0;
}

static inline void door_heap_new(const hw_gc_options *options, const hw_gc_runtime *runtime) {
    door_heap = hw_gc_create(options, runtime);
    if (door_heap == NULL)
        die(2, "cannot make a heap");
}

static inline void door_open(size_t limit) {
    hw_gc_options options = door_options();
    options.most = limit;
    size_t begins = setting("begin", 100, 0, 100);
    if (limit != 0 && options.least == 0)
        options.least = limit / 100 * begins;
    if (limit != 0 && options.factor_percent == 0)
        options.factor_percent = 1000;
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = door_trace, .out_of_memory = door_out_of_memory };
    door_heap_new(&options, &runtime);
}

static inline struct door *door_enter(const void *base) {
    hw_gc_mutator *mutator = hw_gc_attach(door_heap);
    if (mutator == NULL)
        die(3, "out of memory");
    hw_gc_scan_stack(mutator, base);
    return (struct door *)mutator;
}

static inline void door_leave(struct door *door) { hw_gc_detach(&door->mutator); }

static inline void *door_new(struct door *door, size_t size, uint32_t kind) {
    void *object = hw_gc_new(&door->mutator, size, kind);
    if (__builtin_expect(object == NULL, 0))
        die(3, "out of memory");
    return object;
}

static inline void door_write(struct door *door, void *parent, void **slot, void *child) {
    hw_gc_write(&door->mutator, parent, slot, child);
}

static inline void door_mark(door_tracer *tracer, void *object) { hw_gc_mark(tracer, object); }

static inline void door_set_key(void *entry, void **slot, void *key) {
    (void)entry;
    *slot = key;
}

static inline bool door_is_key(const void *there, const void *key) { return there == key; }

static inline void door_ephemeron(door_tracer *tracer, void **key, void **value) { hw_gc_mark_ephemeron(tracer, key, value); }

static inline bool door_finalize(struct door *door, void *object, void (*run)(void *, void *)) {
    return hw_gc_finalize(&door->mutator, object, run, NULL);
}

static inline void door_run_finalizers(struct door *door) { hw_gc_run_finalizers(&door->mutator, SIZE_MAX); }

static inline void door_fields(void) {
    hw_gc_statistics told;
    hw_gc_stats(door_heap, &told, sizeof told);
    field("cycles", told.cycles);
    field("minors", told.minor_cycles);
    field("heap", told.peak_bytes);
    field("live", told.live_bytes);
    field("external", told.external_bytes);
    field("goal", told.goal_bytes);
    field("allocated", told.allocated_bytes);
    field("pause_ns", told.pause_ns);
    field("sweep_ns", told.sweep_ns);
    field("pauses_of_heap", told.pauses);
    field("pause_max_ns", told.pause_max_ns);
}

// The end of a result, and of the program.
static inline int door_end(void) {
    door_fields();
    result_end();
    return 0;
}

#endif
