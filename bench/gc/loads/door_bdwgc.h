// The interface to bdwgc 8.2, in its fastest setup under a limit (docs/gc-figures.md has the tried
// ways and their costs):
//
//   Traced objects come from lists of the thread's own, filled by GC_generic_malloc_many
//   and emptied inline (gc_inline.h): no call, no lock. Leaves come from
//   GC_MALLOC_ATOMIC, which has such lists inside: only the collector's own lists may hold
//   leaves.
//   Only references to an object's beginning keep it, except from stacks. Otherwise bdwgc
//   adds a byte to each object, and one of 32 bytes takes 48.
//   The heap begins with its limit, as GC_INITIAL_HEAP_SIZE would make it, so nothing is
//   collected before it is full.
//   GC_MARKERS is left to the environment: by default each processor has a marker.
//
// Settings of this interface, for trying others: begin= (percent of the limit that the heap begins
// with), divisor= (GC_free_space_divisor), interior= (0 or 1).

#ifndef DOOR_BDWGC_H
#define DOOR_BDWGC_H

#define GC_THREADS
#include "result.h"
#include <gc.h>
#include <gc/gc_inline.h>

enum { DOOR_TRACED, DOOR_LEAF };

struct door {
    void *lists[GC_TINY_FREELISTS];
};

typedef void door_tracer;

static inline void load_trace(door_tracer *tracer, void *object);

static inline void door_quiet(char *message, GC_word argument) {
    (void)message;
    (void)argument;
}

static inline void door_open(size_t limit) {
    size_t begins = setting("begin", 100, 0, 100), divisor = setting("divisor", 0, 0, 1000);
    GC_set_all_interior_pointers((int)setting("interior", 0, 0, 1));
    GC_set_warn_proc(door_quiet);
    GC_set_finalize_on_demand(1);
    GC_INIT();
    if (divisor != 0)
        GC_set_free_space_divisor(divisor);
    GC_allow_register_threads();
    if (limit == 0)
        return;
    GC_set_max_heap_size(limit);
    size_t has = GC_get_heap_size(), wanted = limit / 100 * begins;
    // The collector requests more memory than the call names: the limit may refuse the last part.
    if (wanted > has)
        (void)(GC_expand_hp(wanted - has) || GC_expand_hp((wanted - has) / 100 * 95));
}

// The collector learns of threads by the way they are started.
static inline struct door *door_enter(const void *base) {
    (void)base;
    struct door *door = GC_MALLOC_UNCOLLECTABLE(sizeof *door);
    if (door == NULL)
        die(3, "out of memory");
    return door;
}

static inline void door_leave(struct door *door) { GC_FREE(door); }

static inline void *door_new(struct door *door, size_t size, int kind) {
    void *object;
    if (kind == DOOR_LEAF)
        object = GC_MALLOC_ATOMIC(size);
    else
        GC_MALLOC_WORDS(object, (size + 7) / 8, door->lists);
    if (__builtin_expect(object == NULL, 0))
        die(3, "out of memory");
    return object;
}

static inline void door_write(struct door *door, void *parent, void **slot, void *child) {
    (void)door;
    (void)parent;
    *slot = child;
}

static inline void door_mark(door_tracer *tracer, void *object) {
    (void)tracer;
    (void)object;
}

static inline void door_set_key(void *entry, void **slot, void *key) {
    (void)entry;
    *slot = (void *)GC_HIDE_POINTER(key);
    if (GC_general_register_disappearing_link(slot, key) == GC_NO_MEMORY)
        die(3, "out of memory");
}

static inline bool door_is_key(const void *there, const void *key) { return there == (void *)GC_HIDE_POINTER(key); }

static inline void door_ephemeron(door_tracer *tracer, void **key, void **value) {
    (void)tracer;
    (void)key;
    (void)value;
}

static inline bool door_finalize(struct door *door, void *object, void (*run)(void *, void *)) {
    (void)door;
    GC_register_finalizer_no_order(object, run, NULL, NULL, NULL);
    return true;
}

static inline void door_run_finalizers(struct door *door) {
    (void)door;
    GC_invoke_finalizers();
}

static inline void door_fields(void) {
    field("cycles", GC_get_gc_no());
    field("heap", GC_get_heap_size());
    field("allocated", GC_get_total_bytes());
}

// The end of a result, and of the program.
static inline int door_end(void) {
    door_fields();
    result_end();
    return 0;
}

#endif
