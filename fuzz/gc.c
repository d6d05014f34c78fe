// Runs any bytes as calls of the collected heap's C interface, under AddressSanitizer and libFuzzer
// (ci/fuzz.sh gc). A shadow says which objects are reachable.
//
//   heap's object    | number | count | weaks | reference | reference | ... | weak reference | ...
//   shadow           by number: address, references (numbers), whether freed, registrations for
//                    its end
//
// Every object is of the freed kind, and `died` poisons it. So AddressSanitizer catches each later
// access, by the runtime's trace (which the collector calls) or by the check. After a full
// collection all objects that the shadow's handles lead to are unchanged. Guardians have retrieved
// unreachable objects, and finalizers have run for them. No other object is left.

#include <heapwright_gc.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 4096, HANDLES = 32, MOST = 300, REGISTERED = 256, WEAK = 8 };

struct object {
    size_t number, count, weaks;
    struct object *references[];
};

struct shadow {
    struct object *at;
    size_t count, weaks, size, finalizers;
    unsigned short *references;
    uint32_t guardian;
    bool freed, seen, ended;
};

static struct shadow shadows[OBJECTS];
// Registrations whose objects guardians have not retrieved, by numbers of objects.
static struct registration {
    size_t guardian, object, representative;
} registered[REGISTERED];
static size_t registrations;
// Whether the seen objects are all that were alive before finalizers became due.
static bool is_settled, is_incremental;
static size_t made;
static void **handles[HANDLES];
static size_t kept[HANDLES];
// Weak handles, and the numbers of their objects, from 1.
static void **weak[WEAK];
static size_t weak_to[WEAK];
static hw_gc_heap *heap;
static hw_gc_mutator *mutator;

#define check(what) ((what) ? (void)0 : abort())

static void trace(hw_gc_tracer *tracer, void *memory, void *data) {
    (void)data;
    struct object *object = memory;
    size_t strong = object->count - object->weaks;
    // Some objects are traced in parts: trace is called again for the next part.
    if (strong > 12 && object->number % 3 == 0) {
        size_t from = hw_gc_traced_to(tracer), to = from + 7 < strong ? from + 7 : strong;
        for (size_t i = from; i < to; i++)
            hw_gc_mark_slot(tracer, (void **)&object->references[i]);
        if (to < strong) {
            hw_gc_trace_rest(tracer, object, to);
            return;
        }
    } else if (strong > 30)
        hw_gc_mark_range(tracer, (void **)object->references, strong);
    else
        for (size_t i = 0; i < strong; i++)
            hw_gc_mark(tracer, object->references[i]);
    for (size_t i = strong; i < object->count; i++)
        hw_gc_mark_weak(tracer, (void **)&object->references[i]);
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
// Returns mostly one of a few handles, so that handles lead to each other's objects.
static size_t handle(void) {
    size_t any = next();
    return any < 224 ? any % 6 : any % HANDLES;
}

static void make(bool leaf) {
    size_t count = leaf ? 0 : next() % 64, cell = handle();
    size_t weaks = count == 0 || next() % 2 == 0 ? 0 : next() % count;
    size_t size = sizeof(struct object) + count * sizeof(void *) + next() * (next() % 8 == 0 ? 300 : 1);
    if (made == OBJECTS)
        return;
    struct object *object = hw_gc_alloc(mutator, size, HW_GC_FREED | (leaf ? HW_GC_LEAF : HW_GC_TRACED));
    if (object == NULL)
        return;
    __asan_unpoison_memory_region(object, hw_gc_object_size(object));
    object->number = made;
    object->count = count;
    object->weaks = weaks;
    shadows[made] = (struct shadow){ .at = object, .count = count, .weaks = weaks };
    shadows[made].references = calloc(count + 1, sizeof(short));
    *handles[cell] = object;
    kept[cell] = made++;
}

static void store(void) {
    size_t from = handle(), to = handle(), place = next();
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

static void load(void) {
    size_t from = handle(), to = handle(), place = next();
    struct object *parent = *handles[from];
    if (parent == NULL || parent->count == 0)
        return;
    place %= parent->count;
    *handles[to] = parent->references[place];
    if (*handles[to] != NULL)
        kept[to] = shadows[kept[from]].references[place] - 1u;
}

// Makes a weak handle lead to an object: over another object by hw_gc_weak_set.
static void lead_weakly(void) {
    size_t to = handle(), cell = next() % WEAK;
    if (next() % 8 == 0) {
        hw_gc_weak_free(mutator, weak[cell]);
        check((weak[cell] = hw_gc_weak_new(mutator, *handles[to])) != NULL);
    } else if (*weak[cell] == NULL) {
        *weak[cell] = *handles[to];
    } else {
        hw_gc_weak_set(mutator, weak[cell], *handles[to]);
    }
    weak_to[cell] = *handles[to] == NULL ? 0 : kept[to] + 1;
}

// Loads the object of a weak handle, if the object lives.
static void load_weakly(void) {
    size_t to = handle(), cell = next() % WEAK;
    if (*weak[cell] != NULL) {
        check(weak_to[cell] != 0);
        struct shadow *shown = &shadows[weak_to[cell] - 1];
        check(shown->at == *weak[cell] && !shown->freed);
        *handles[to] = *weak[cell];
        kept[to] = weak_to[cell] - 1;
    }
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
        for (size_t i = 0; i < shadow->count - shadow->weaks; i++) {
            unsigned short reference = shadow->references[i];
            check(shadow->at->references[i] == (reference == 0 ? NULL : shadows[reference - 1].at));
            if (reference != 0 && !shadows[reference - 1].seen && count < OBJECTS)
                grey[count++] = reference - 1;
        }
    }
}

// Marks the objects that handles lead to, and the objects that live guardians keep.
static void see_all(void) {
    for (size_t i = 0; i < made; i++)
        shadows[i].seen = false;
    for (size_t i = 0; i < HANDLES; i++)
        if (*handles[i] != NULL)
            see(kept[i]);
    for (bool more = true; more;) {
        more = false;
        for (struct registration *one = registered; one < registered + registrations; one++)
            if (shadows[one->guardian].seen && shadows[one->object].seen) {
                more |= !shadows[one->representative].seen;
                see(one->representative);
            }
    }
}

// Weak places in seen objects lead to seen objects, or nowhere.
static void see_weak(struct shadow *shadow) {
    for (size_t i = shadow->count - shadow->weaks; i < shadow->count; i++) {
        unsigned short reference = shadow->references[i];
        bool leads = reference != 0 && shadows[reference - 1].seen;
        check(shadow->at->references[i] == (leads ? shadows[reference - 1].at : NULL));
        shadow->references[i] = leads ? reference : 0;
    }
}

// A finalizer. Its object is whole. Weak places in the object show no object, itself included,
// whose finalizer is due or has run.
static void ends(void *memory, void *data) {
    (void)data;
    struct object *object = memory;
    struct shadow *shadow = &shadows[object->number];
    check(object->number < made && shadow->at == object && !shadow->freed);
    check(shadow->finalizers-- > 0);
    shadow->ended = true;
    for (size_t i = shadow->count - shadow->weaks; is_settled && i < shadow->count; i++)
        if (object->references[i] != NULL) {
            struct shadow *shown = &shadows[object->references[i]->number];
            check(!shown->freed && (shown->seen || (shown->finalizers == 0 && !shown->ended)));
        }
}

static void finalize(void) {
    size_t cell = handle();
    if (*handles[cell] != NULL && hw_gc_finalize(mutator, *handles[cell], ends, NULL))
        shadows[kept[cell]].finalizers++;
}

static void guard(void) {
    size_t from = handle(), about = handle(), given = handle();
    void *guardian = *handles[from], *object = *handles[about], *representative = *handles[given];
    if (!guardian || !object || !representative || registrations == REGISTERED)
        return;
    // A retrieved representative must say which object is due.
    for (struct registration *one = registered; one < registered + registrations; one++)
        if (one->guardian == kept[from] && one->representative == kept[given] && one->object != kept[about])
            return;
    uint32_t *number = &shadows[kept[from]].guardian;
    if (*number == 0)
        *number = hw_gc_guardian_new(mutator, guardian);
    check(*number != 0 && hw_gc_guard(mutator, *number, object, representative));
    registered[registrations++] = (struct registration){ kept[from], kept[about], kept[given] };
}

// Retrieves from a guardian. The result, if any, is an object that was registered with it.
static struct object *retrieved(size_t guardian) {
    struct object *object = hw_gc_retrieve(mutator, shadows[guardian].guardian);
    if (object == NULL)
        return NULL;
    struct registration *it = registered, *end = registered + registrations;
    while (it < end && !(it->guardian == guardian && it->representative == object->number))
        it++;
    check(it < end && !shadows[object->number].freed);
    *it = registered[--registrations];
    return object;
}

static void retrieve(void) {
    size_t from = handle(), to = handle();
    if (*handles[from] == NULL || shadows[kept[from]].guardian == 0)
        return;
    see_all();
    struct object *object = retrieved(kept[from]);
    if (object != NULL) {
        *handles[to] = object;
        kept[to] = object->number;
    }
}

// Forgets registrations with dead guardians. Returns whether handles lead to all other guardians.
static bool handles_lead_to_guardians(void) {
    size_t left = 0;
    bool all = true;
    for (size_t i = 0; i < registrations; i++)
        if (!shadows[registered[i].guardian].freed) {
            all &= shadows[registered[i].guardian].seen;
            registered[left++] = registered[i];
        }
    registrations = left;
    return all;
}

static void look(void) {
    hw_gc_run_finalizers(mutator, OBJECTS);
    for (bool more = true; more;) {
        hw_gc_collect(mutator);
        see_all();
        more = false;
        // A retrieved object is alive until the next collection.
        for (size_t i = 0; i < made; i++)
            while (shadows[i].guardian != 0 && shadows[i].seen) {
                struct object *object = retrieved(i);
                if (object == NULL)
                    break;
                see(object->number);
                more = true;
            }
        // All due finalizers became due in one collection, and keep no guardian.
        is_settled = handles_lead_to_guardians() && !is_incremental;
        more |= hw_gc_run_finalizers(mutator, OBJECTS) > 0;
        is_settled = false;
    }
    hw_gc_collect(mutator);
    for (size_t i = 0; i < made; i++) {
        check(shadows[i].seen == !shadows[i].freed);
        if (shadows[i].seen)
            see_weak(&shadows[i]);
    }
    for (size_t i = 0; i < WEAK; i++) {
        bool leads = weak_to[i] != 0 && shadows[weak_to[i] - 1].seen;
        check(*weak[i] == (leads ? shadows[weak_to[i] - 1].at : NULL));
        weak_to[i] = leads ? weak_to[i] : 0;
    }
    check(handles_lead_to_guardians());
    for (size_t i = 0; i < registrations; i++)
        check(shadows[registered[i].object].seen);
    check(hw_gc_verify(mutator) == 0);
}

// Two threads fork, while the main thread collects.
static size_t forking;
static void *forks(void *unused) {
    hw_gc_mutator *mine = hw_gc_attach(heap);
    check(mine != NULL);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            for (int j = 0; j < 50; j++)
                hw_gc_new(mine, 64, HW_GC_LEAF);
            hw_gc_collect(mine);
            _exit(0);
        }
        int status = 0;
        hw_gc_leave(mine);
        check(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        hw_gc_enter(mine);
        for (int j = 0; j < 50; j++)
            hw_gc_new(mine, 64, HW_GC_LEAF);
    }
    hw_gc_detach(mine);
    __atomic_fetch_sub(&forking, 1, __ATOMIC_RELEASE);
    return unused;
}

static void fork_and_collect(void) {
    pthread_t threads[2];
    forking = 2;
    for (int i = 0; i < 2; i++)
        check(pthread_create(&threads[i], NULL, forks, NULL) == 0);
    while (__atomic_load_n(&forking, __ATOMIC_ACQUIRE) > 0)
        hw_gc_collect(mutator);
    hw_gc_leave(mutator);
    for (int i = 0; i < 2; i++)
        check(pthread_join(threads[i], NULL) == 0);
    hw_gc_enter(mutator);
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
    // Barriers matter most with steps between any two calls. A verifier checks them.
    options.incremental = true;
    options.verify = HW_GC_VERIFY_BARRIERS | HW_GC_STRESS;
#endif
    is_incremental = options.incremental;
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = trace, .free = died };
    heap = hw_gc_create(&options, &runtime);
    mutator = hw_gc_attach(heap);
    check(mutator != NULL);
    made = registrations = 0;
    // (A fork takes a hundred times as long as all other operations.)
    bool forks_once = next() % 64 == 63;
    for (size_t i = 0; i < HANDLES; i++)
        check((handles[i] = hw_gc_root_new(mutator, NULL)) != NULL);
    for (size_t i = 0; i < WEAK; i++) {
        check((weak[i] = hw_gc_weak_new(mutator, NULL)) != NULL);
        weak_to[i] = 0;
    }
    for (int call = 0; call < MOST && left > 0; call++)
        switch (next() % 24) {
        case 0: case 1: case 2: make(false); break;
        case 3: make(true); break;
        case 4: case 5: case 6: store(); break;
        case 7: *handles[handle()] = NULL; break;
        case 8: hw_gc_step(mutator, next() * 100); break;
        case 9: hw_gc_ask(mutator); break;
        case 10: hw_gc_external(mutator, (ptrdiff_t)(next() << 12)); break;
        case 11: case 12: load(); break;
        case 13: finalize(); break;
        case 14: case 15: guard(); break;
        case 16: retrieve(); break;
        case 17: hw_gc_run_finalizers(mutator, next() % 4); break;
        case 18:
            if (forks_once)
                fork_and_collect();
            forks_once = false;
            break;
        case 19: case 20: lead_weakly(); break;
        case 21: load_weakly(); break;
        case 22: hw_gc_collect_minor(mutator); break;
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
