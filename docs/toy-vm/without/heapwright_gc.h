/*
 * What toy.c includes before it is ported: the same names, on calloc, without a collector.
 * Nothing is ever freed, and no finalizer is run. Step 0 of docs/gc.md.
 */
#ifndef HEAPWRIGHT_GC_H
#define HEAPWRIGHT_GC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { HW_GC_TRACED, HW_GC_LEAF, HW_GC_FREED, HW_GC_POOLS = 1 };
enum { HW_GC_LAYOUT_RUBY = 1, HW_GC_LAYOUT_POWERS, HW_GC_LAYOUT_SINGLE };
enum { HW_GC_VERIFY_HEAP = 1, HW_GC_VERIFY_BARRIERS = 2, HW_GC_STRESS = 4 };

typedef struct { int any; } hw_gc_heap, hw_gc_mutator, hw_gc_tracer;
typedef struct { size_t size, least; uint64_t step_ns; uint32_t layout, verify; bool incremental, generations, compact; } hw_gc_options;
typedef struct {
    size_t size;
    void *data;
    void (*trace)(hw_gc_tracer *tracer, void *object, void *data);
    void (*roots)(hw_gc_tracer *tracer, void *data);
    void (*free)(void *object, size_t size, void *data);
    const char *(*type_name)(const void *object, void *data);
} hw_gc_runtime;
typedef struct { uint64_t slot_size, pages, live, free_slots; uint32_t decision; } hw_gc_pool_statistics;
typedef struct {
    uint64_t cycles, pauses, pause_max_ns, live_bytes, goal_bytes, in_use_bytes, empty_bytes, large_bytes;
    uint64_t external_bytes, compactions, moved_objects;
    hw_gc_pool_statistics pool[HW_GC_POOLS];
} hw_gc_statistics;

#define HW_WITHOUT static inline
HW_WITHOUT hw_gc_heap *hw_gc_create(const hw_gc_options *o, const hw_gc_runtime *r) { return (void)o, (void)r, (hw_gc_heap *)calloc(1, sizeof(hw_gc_heap)); }
HW_WITHOUT void hw_gc_destroy(hw_gc_heap *h) { free(h); }
HW_WITHOUT hw_gc_mutator *hw_gc_attach(hw_gc_heap *h) { return (void)h, (hw_gc_mutator *)calloc(1, sizeof(hw_gc_mutator)); }
HW_WITHOUT void hw_gc_detach(hw_gc_mutator *m) { free(m); }
HW_WITHOUT void *hw_gc_new(hw_gc_mutator *m, size_t size, uint32_t kind) { return (void)m, (void)kind, calloc(1, size); }
HW_WITHOUT void hw_gc_write(hw_gc_mutator *m, void *parent, void **slot, void *child) { (void)m, (void)parent, *slot = child; }
HW_WITHOUT void hw_gc_mark(hw_gc_tracer *t, void *object) { (void)t, (void)object; }
HW_WITHOUT void hw_gc_mark_slot(hw_gc_tracer *t, void **slot) { (void)t, (void)slot; }
HW_WITHOUT void hw_gc_mark_range(hw_gc_tracer *t, void **slots, size_t n) { (void)t, (void)slots, (void)n; }
HW_WITHOUT void hw_gc_poll(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT void hw_gc_leave(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT void hw_gc_enter(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT void hw_gc_collect(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT void hw_gc_compact(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT void hw_gc_ask_compact(hw_gc_mutator *m) { (void)m; }
HW_WITHOUT bool hw_gc_owed(hw_gc_mutator *m) { return (void)m, false; }
HW_WITHOUT bool hw_gc_step(hw_gc_mutator *m, uint64_t ns) { return (void)m, (void)ns, true; }
HW_WITHOUT void hw_gc_scan_stack(hw_gc_mutator *m, const void *base) { (void)m, (void)base; }
HW_WITHOUT void **hw_gc_root_new(hw_gc_mutator *m, void *object) { void **cell = (void **)malloc(sizeof *cell); return (void)m, *cell = object, cell; }
HW_WITHOUT void hw_gc_root_free(hw_gc_mutator *m, void **cell) { (void)m, free(cell); }
HW_WITHOUT void *hw_gc_malloc(hw_gc_mutator *m, size_t size) { return (void)m, malloc(size); }
HW_WITHOUT void hw_gc_free(hw_gc_mutator *m, void *block, size_t size) { (void)m, (void)size, free(block); }
HW_WITHOUT bool hw_gc_finalize(hw_gc_mutator *m, void *object, void (*run)(void *, void *), void *context) { return (void)m, (void)object, (void)run, (void)context, true; }
HW_WITHOUT size_t hw_gc_run_finalizers(hw_gc_mutator *m, size_t most) { return (void)m, (void)most, 0; }
HW_WITHOUT size_t hw_gc_stats(hw_gc_heap *h, hw_gc_statistics *out, size_t size) { hw_gc_statistics none = { 0 }; return (void)h, *out = none, size; }
HW_WITHOUT bool hw_gc_walk(hw_gc_mutator *m, bool (*visit)(void *, size_t, uint32_t, void *), void *context) { return (void)m, (void)visit, (void)context, true; }
HW_WITHOUT bool hw_gc_dump(hw_gc_mutator *m, int32_t descriptor) { return (void)m, (void)descriptor, false; }

#endif
