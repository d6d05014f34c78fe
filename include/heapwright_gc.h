/*
 * The fast paths of heapwright's collected heaps, inline. Written by hand, over the heads of
 * the structs in heapwright.h.
 *
 *   region    | object | object | free ............. |
 *                               ^ next               ^ end      allocating moves next
 *
 *   tracer    | reference | reference | ............ |
 *                                     ^ next         ^ end      reporting one stores it there
 *
 * The program's duties (docs/gc.md gives the reasons, step by step):
 *
 *  1. Roots. Whenever a collection may run (hw_gc_new, hw_gc_alloc, hw_gc_poll, hw_gc_safepoint, hw_gc_step,
 *     hw_gc_collect), a root leads to every object that the program still needs: a handle, a reference
 *     that the runtime's roots reports, a word on a scanned stack, or another such object.
 *  2. Tracing. The runtime's trace reports every reference that an object holds, by the address
 *     that the allocation gave. It changes nothing and calls only the functions on tracers.
 *     Any thread may call it, several at a time: mutators, and marker threads of the heap (see
 *     markers in hw_gc_options).
 *  3. Initialising. A traced object arrives zeroed (unless the heap is uncleared), and trace understands zeroes.
 *  4. Barriers. If the heap is incremental or has generations, every store of a reference into an object goes
 *     through hw_gc_write, or has hw_gc_barrier, hw_gc_touch or hw_gc_touch_slot beside it. Two kinds of
 *     objects need none: those allocated after the last possible collection, and those given to hw_gc_unprotect.
 *  5. Safepoints. An attached thread soon allocates, polls, or leaves (hw_gc_leave); otherwise all
 *     others wait for it. A mutator belongs to one thread; a thread has one in each heap.
 *  6. Freeing. The runtime's free reads no other object, and allocates nothing.
 *  7. Moving. On a heap with compact, or when the program calls hw_gc_compact, hw_gc_compact_all or
 *     hw_gc_ask_compact: only handles and reported slots (hw_gc_mark_slot, hw_gc_mark_range, weak ones) lead
 *     to an object that may move, if the program uses it afterwards. A slot holds a reference, NULL, or a
 *     word that is no object's address, as long as its object lives. An object stays in place if hw_gc_mark reports it, if a scanned stack may lead to it, or
 *     if it is pinned. A function that may collect may move objects: the program then reads local variables
 *     again from their handles. Or the runtime changes all references itself (hw_gc_mark_movable, update
 *     and update_roots of hw_gc_runtime).
 *
 * heapwright's duties: it does not free an object that roots lead to, and moves it only as above. It
 * frees any other object, at the latest by the second major collection that begins afterwards. (Without
 * generations, all collections are major.) A step ends with its budget, plus the time to report the roots
 * and to trace or free a few objects.
 */

#ifndef HEAPWRIGHT_GC_H
#define HEAPWRIGHT_GC_H

#include "heapwright.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HW_GC_INLINE static __inline__ __attribute__((always_inline, unused))
#define HW_GC_LIKELY(x) __builtin_expect(!!(x), 1)
#define HW_GC_ASSUME(x) ((x) ? (void)0 : __builtin_unreachable())
#define HW_GC_PREFETCH(at) __builtin_prefetch(at)
#else
#define HW_GC_INLINE static inline
#define HW_GC_LIKELY(x) (x)
#define HW_GC_ASSUME(x) ((void)0)
#define HW_GC_PREFETCH(at) ((void)0)
#endif

/* Memory for an object from the mutator's region; NULL: the region has none of that size. Never collects and takes no lock: for a
 * runtime that must act before it calls hw_gc_alloc. */
HW_GC_INLINE void *hw_gc_try(hw_gc_mutator *mutator, size_t size, uint32_t kind) {
    if (HW_GC_LIKELY(size <= 32768 && kind <= 7u)) {
        char *first = (char *)&mutator->regions[kind];
        hw_gc_region *region = (hw_gc_region *)(void *)(first + mutator->places[(size + 7) / 8]);
        char *object = region->next;
        uintptr_t next = (uintptr_t)object + region->slot;
        if (HW_GC_LIKELY(next <= (uintptr_t)region->end)) {
            region->next = object + region->slot;
            HW_GC_ASSUME(object != NULL);
            return object;
        }
        if (HW_GC_LIKELY(region->hole != NULL)) {
            void **hole = region->hole;
            region->end = (char *)hole[0];
            region->hole = (void **)hole[1];
            HW_GC_PREFETCH(region->hole);
            hole[0] = NULL;
            hole[1] = NULL;
            region->next = (char *)hole + region->slot;
            return hole;
        }
    }
    return NULL;
}

/* Memory for an object; see hw_gc_alloc. Takes nine instructions if size and kind are constants.
 * Never returns NULL if out_of_memory never returns false. */
HW_GC_INLINE void *hw_gc_new(hw_gc_mutator *mutator, size_t size, uint32_t kind) {
    void *object = hw_gc_try(mutator, size, kind);
    return HW_GC_LIKELY(object != NULL) ? object : hw_gc_alloc(mutator, size, kind);
}

/* hw_gc_object_size, inline, of an object of the mutator's heap. */
HW_GC_INLINE size_t hw_gc_slot_of(hw_gc_mutator *mutator, const void *object) {
    uint32_t region = ((const volatile uint32_t *)mutator->units)[(uintptr_t)object >> 16] - mutator->first_list;
    /* The last regions are those of large objects. */
    return HW_GC_LIKELY(region < HW_GC_REGIONS - 8) ? mutator->regions[region].slot : hw_gc_object_size(object);
}

/* Whether an object has its mark. */
HW_GC_INLINE int hw_gc_has_mark(hw_gc_mutator *mutator, void *object) {
    uintptr_t at = (uintptr_t)object;
    return *(const volatile uint8_t *)(mutator->marks + (at >> 7)) >> (at >> 4 & 7) & 1;
}

/* The barrier without the store: the program stores child into *slot, which lies in parent, just before or after this, with
 * no safepoint in between. For stores other than plain ones: atomic exchanges, several words at a time. */
HW_GC_INLINE void hw_gc_barrier(hw_gc_mutator *mutator, void *parent, void **slot, void *child) {
    uint32_t barrier = *(volatile uint32_t *)&mutator->barrier;
    if (!HW_GC_LIKELY(barrier == 0)) {
        if (barrier & HW_GC_MOVING) {
            hw_gc_wrote(mutator, parent, slot, child);
            return;
        }
        /* Only parents with a mark matter: those that were traced, or are old. */
        if (parent == NULL || hw_gc_has_mark(mutator, parent))
            hw_gc_wrote(mutator, parent, slot, child);
    }
}

/* Stores child into *slot, which lies in parent. */
HW_GC_INLINE void hw_gc_write(hw_gc_mutator *mutator, void *parent, void **slot, void *child) {
    *slot = child;
    hw_gc_barrier(mutator, parent, slot, child);
}

/* The barrier for unknown or many references, as by memcpy: the program stores into parent, just before or after this, with no
 * safepoint in between. The collector traces all of parent, which is not NULL, again. */
HW_GC_INLINE void hw_gc_touch(hw_gc_mutator *mutator, void *parent) {
    uint32_t barrier = *(volatile uint32_t *)&mutator->barrier;
    if (!HW_GC_LIKELY(barrier == 0) && (barrier & HW_GC_MOVING || hw_gc_has_mark(mutator, parent)))
        hw_gc_touched(mutator, parent);
}

/* The same for one slot of parent: the collector reads only that slot again (of a small old object, all). */
HW_GC_INLINE void hw_gc_touch_slot(hw_gc_mutator *mutator, void *parent, void **slot) {
    uint32_t barrier = *(volatile uint32_t *)&mutator->barrier;
    if (!HW_GC_LIKELY(barrier == 0) && (barrier & HW_GC_MOVING || hw_gc_has_mark(mutator, parent)))
        hw_gc_touched_slot(mutator, parent, slot);
}

/* Reports a reference: an object's address. Ignores NULL, and words that are no multiple of 8 (small
 * integers that a runtime tags). */
HW_GC_INLINE void hw_gc_mark(hw_gc_tracer *tracer, void *object) {
    void **next = tracer->next;
    if (HW_GC_LIKELY(next != tracer->end)) {
        /* Without a branch, because no processor can predict which words are NULL. The next word
         * overwrites an ignored one. */
        *next = object;
        tracer->next = next + ((object != NULL) & (((uintptr_t)object & 7) == 0));
    } else {
        hw_gc_mark_full(tracer, object);
    }
}

/* Reports the reference in a slot of the traced object, or of a root. As hw_gc_mark, but the object
 * may move, and then the collector changes the slot. */
HW_GC_INLINE void hw_gc_mark_slot(hw_gc_tracer *tracer, void **slot) {
    if (HW_GC_LIKELY(tracer->by_slot == 0)) {
        hw_gc_mark(tracer, *slot);
    } else {
        hw_gc_mark_slot_moving(tracer, slot);
    }
}

/* Reports a reference in any place: as hw_gc_mark, but the object may move, and then the runtime changes the reference, in update or
 * update_roots of hw_gc_runtime. Without these callbacks it is hw_gc_mark. */
HW_GC_INLINE void hw_gc_mark_movable(hw_gc_tracer *tracer, void *object) {
    if (HW_GC_LIKELY(tracer->by_slot == 0)) {
        hw_gc_mark(tracer, object);
    } else {
        hw_gc_mark_movable_moving(tracer, object);
    }
}

/* The runtime's word of a mutator: NULL at first. For the runtime's struct of the thread, say; heapwright never reads it. */
HW_GC_INLINE void *hw_gc_data(const hw_gc_mutator *mutator) { return mutator->data; }

/* Sets the runtime's word. */
HW_GC_INLINE void hw_gc_set_data(hw_gc_mutator *mutator, void *data) { mutator->data = data; }

/* Stops if a collection requests it. */
HW_GC_INLINE void hw_gc_poll(hw_gc_mutator *mutator) {
    if (!HW_GC_LIKELY(*(volatile uint32_t *)&mutator->poll == 0)) hw_gc_safepoint(mutator);
}

#ifdef __cplusplus
}
#endif

#endif /* HEAPWRIGHT_GC_H */
