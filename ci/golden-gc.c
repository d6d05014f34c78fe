// golden-gc: as golden.c, for the inline functions of heapwright_gc.h and ci/golden.sh gc. A round allocates 8 objects
// whose size is a constant and 8 whose size is not. It stores 8 times, calls each barrier without a store 8 times, and
// polls 8 times.

#include <heapwright_gc.h>
#include <stdlib.h>

static hw_gc_mutator *mutator;
static void *object[4];
static size_t size = 48;

__attribute__((noinline)) void part(void) { __asm__ volatile(""); }
__attribute__((noinline)) void *call_gc_new(hw_gc_mutator *m) { return hw_gc_new(m, 32, HW_GC_TRACED); }
__attribute__((noinline)) void *call_gc_new_sized(hw_gc_mutator *m, size_t n) { return hw_gc_new(m, n, HW_GC_LEAF); }
__attribute__((noinline)) void call_gc_write(hw_gc_mutator *m, void **slot, void *child) { hw_gc_write(m, slot, slot, child); }
__attribute__((noinline)) void call_gc_barrier(hw_gc_mutator *m, void **slot, void *child) { hw_gc_barrier(m, slot, slot, child); }
__attribute__((noinline)) void call_gc_touch(hw_gc_mutator *m, void *parent) { hw_gc_touch(m, parent); }
__attribute__((noinline)) void call_gc_touch_slot(hw_gc_mutator *m, void *parent, void **slot) { hw_gc_touch_slot(m, parent, slot); }
__attribute__((noinline)) void call_gc_poll(hw_gc_mutator *m) { hw_gc_poll(m); }

static void rounds(long count) {
    for (long r = 0; r < count; r++)
        for (int i = 0; i < 8; i++) {
            object[0] = call_gc_new(mutator);
            object[1] = call_gc_new_sized(mutator, size);
            call_gc_write(mutator, &object[2], object[1]);
            call_gc_barrier(mutator, &object[2], object[1]);
            call_gc_touch(mutator, object[1]);
            call_gc_touch_slot(mutator, object[1], &object[2]);
            call_gc_poll(mutator);
        }
}

int main(void) {
    hw_gc_runtime runtime = { .size = sizeof runtime };
    hw_gc_heap *heap = hw_gc_create(NULL, &runtime);
    if (heap == NULL || (mutator = hw_gc_attach(heap)) == NULL) return 1;
    rounds(2000);
    for (int r = 0; r < 40; r++) {
        part();
        rounds(1);
    }
    part();
    rounds(20000);
    part();
    hw_gc_detach(mutator);
    hw_gc_destroy(heap);
    return 0;
}
