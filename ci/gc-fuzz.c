// gc-fuzz: any bytes as calls of the collected heap's C interface, under AddressSanitizer and
// libFuzzer (ci/gc-fuzz.sh), against a shadow of what is reachable.
//
//   heap's object    | number | count | reference | reference | ...
//   shadow           by number: address, references (numbers), whether freed
//
// Every object wants to be freed, and is poisoned when it is: whatever touches it afterwards (the
// runtime's trace, which the collector calls, or the check) is caught in the act. After
// a full collection everything that the shadow's handles lead to is as it was written.

#include <heapwright_gc.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 4096, HANDLES = 32, MOST = 300 };

struct object {
    size_t number, count;
    struct object *references[];
};

struct shadow {
    struct object *at;
    size_t count, size;
    unsigned short *references;
    bool freed, seen;
};

static struct shadow shadows[OBJECTS];
static size_t made;
static void **handles[HANDLES];
static size_t kept[HANDLES];
static hw_gc_heap *heap;
static hw_gc_mutator *mutator;

#define check(what) ((what) ? (void)0 : abort())

static void trace(hw_gc_tracer *tracer, void *memory, void *data) {
    (void)data;
    struct object *object = memory;
    if (object->count > 30)
        hw_gc_mark_range(tracer, (void **)object->references, object->count);
    else
        for (size_t i = 0; i < object->count; i++)
            hw_gc_mark(tracer, object->references[i]);
}

static void died(void *memory, size_t size, void *data) {
    (void)data;
    struct object *object = memory;
    check(object->number < made && !shadows[object->number].freed);
    shadows[object->number].freed = true;
    shadows[object->number].size = size;
    __asan_poison_memory_region(object, size);
}

// The input, byte by byte; zeroes behind its end.
static const uint8_t *input;
static size_t left;
static size_t next(void) { return left == 0 ? 0 : (left--, *input++); }

static void make(bool leaf) {
    size_t count = leaf ? 0 : next() % 64, handle = next() % HANDLES;
    size_t size = sizeof(struct object) + count * sizeof(void *) + next() * (next() % 8 == 0 ? 300 : 1);
    if (made == OBJECTS)
        return;
    struct object *object = hw_gc_alloc(mutator, size, HW_GC_FREED | (leaf ? HW_GC_LEAF : HW_GC_TRACED));
    if (object == NULL)
        return;
    __asan_unpoison_memory_region(object, hw_gc_object_size(object));
    object->number = made;
    object->count = count;
    shadows[made] = (struct shadow){ .at = object, .count = count, .references = calloc(count + 1, sizeof(short)) };
    *handles[handle] = object;
    kept[handle] = made++;
}

static void store(void) {
    size_t from = next() % HANDLES, to = next() % HANDLES, place = next();
    struct object *parent = *handles[from];
    if (parent == NULL || parent->count == 0)
        return;
    place %= parent->count;
#ifdef WITHOUT_BARRIER
    parent->references[place] = *handles[to];
#else
    hw_gc_write(mutator, parent, (void **)&parent->references[place], *handles[to]);
#endif
    shadows[kept[from]].references[place] = *handles[to] == NULL ? 0 : (unsigned short)(kept[to] + 1);
}

static void see(size_t number) {
    static size_t grey[OBJECTS];
    size_t count = 0;
    grey[count++] = number;
    while (count > 0) {
        struct shadow *shadow = &shadows[grey[--count]];
        if (shadow->seen)
            continue;
        shadow->seen = true;
        check(!shadow->freed && shadow->at->number == (size_t)(shadow - shadows) && shadow->at->count == shadow->count);
        check(hw_gc_find(heap, (char *)shadow->at + 9) == shadow->at);
        for (size_t i = 0; i < shadow->count; i++) {
            unsigned short reference = shadow->references[i];
            check(shadow->at->references[i] == (reference == 0 ? NULL : shadows[reference - 1].at));
            if (reference != 0 && !shadows[reference - 1].seen && count < OBJECTS)
                grey[count++] = reference - 1;
        }
    }
}

static void look(void) {
    hw_gc_collect(mutator);
    hw_gc_collect(mutator);
    for (size_t i = 0; i < made; i++)
        shadows[i].seen = false;
    for (size_t i = 0; i < HANDLES; i++)
        if (*handles[i] != NULL)
            see(kept[i]);
    for (size_t i = 0; i < made; i++)
        check(shadows[i].seen == !shadows[i].freed);
    check(hw_gc_verify(mutator) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    input = bytes;
    left = size;
    hw_gc_options options = {
        .size = sizeof options, .layout = next() % 4, .incremental = next() % 2, .generations = next() % 2,
        .verify = next() % 8, .least = 4096 << next() % 8, .most = next() % 2 == 0 ? 0 : 1 << 20, .step_ns = 1 << next() % 16,
    };
#ifdef WITHOUT_BARRIER
    // Where barriers are needed most: steps between any two calls, and their verifier.
    options.incremental = true;
    options.verify = HW_GC_VERIFY_BARRIERS | HW_GC_STRESS;
#endif
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = trace, .free = died };
    heap = hw_gc_create(&options, &runtime);
    mutator = hw_gc_attach(heap);
    check(mutator != NULL);
    made = 0;
    for (size_t i = 0; i < HANDLES; i++)
        check((handles[i] = hw_gc_root_new(mutator, NULL)) != NULL);
    for (int call = 0; call < MOST && left > 0; call++)
        switch (next() % 12) {
        case 0: case 1: case 2: make(false); break;
        case 3: make(true); break;
        case 4: case 5: case 6: store(); break;
        case 7: *handles[next() % HANDLES] = NULL; break;
        case 8: hw_gc_step(mutator, next() * 100); break;
        case 9: hw_gc_ask(mutator); break;
        case 10: hw_gc_external(mutator, (ptrdiff_t)(next() << 12)); break;
        default: look(); break;
        }
    look();
    for (size_t i = 0; i < HANDLES; i++)
        hw_gc_root_free(mutator, handles[i]);
    hw_gc_detach(mutator);
    hw_gc_destroy(heap);
    for (size_t i = 0; i < made; i++) {
        check(shadows[i].freed);
        free(shadows[i].references);
        __asan_unpoison_memory_region(shadows[i].at, shadows[i].size);
    }
    return 0;
}
