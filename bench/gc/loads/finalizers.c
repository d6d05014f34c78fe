// finalizers [threads=T] [kept=K] [rounds=N] [limit=KIB]
//
// Objects with finalizers: K exist at a time, and each round replaces one of them. The finalizer
// reads the object's references. Due finalizers run every thousand rounds.

#include "threads.h"

struct resource {
    uint64_t head;
    uint64_t *number;
    uint64_t spare[2];
};

struct array {
    uint64_t head;
    void *at[];
};

enum { ARRAY = 1, RESOURCE = 2, OFTEN = 1000 };

static size_t kept, rounds;
static uint64_t finalized, wrong;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct resource *resource = object;
    if (resource->head == RESOURCE) {
        door_mark(tracer, resource->number);
    } else if (resource->head == ARRAY) {
        struct array *array = object;
        for (size_t i = 0; i < kept; i++)
            door_mark(tracer, array->at[i]);
    }
}

static void finalize(void *object, void *context) {
    struct resource *resource = object;
    (void)context;
    __atomic_fetch_add(&finalized, 1, __ATOMIC_RELAXED);
    if (*resource->number != resource->spare[0])
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static uint64_t work(struct door *door, size_t thread) {
    struct array *array = door_new(door, sizeof *array + kept * sizeof(void *), DOOR_TRACED);
    array->head = ARRAY;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kept + rounds; i++) {
        uint64_t *number = door_new(door, sizeof *number, DOOR_LEAF);
        *number = i;
        struct resource *resource = door_new(door, sizeof *resource, DOOR_TRACED);
        resource->head = RESOURCE;
        resource->spare[0] = i;
        door_write(door, resource, (void **)&resource->number, number);
        if (!door_finalize(door, resource, finalize))
            die(3, "out of memory");
        door_write(door, array, &array->at[i % kept], resource);
        sum += *number;
        if (i % OFTEN == 0)
            door_run_finalizers(door);
    }
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("finalizers", argc, argv);
    size_t threads = threads_setting();
    kept = setting("kept", 100000, 1, 1 << 24);
    rounds = setting("rounds", 1000000, 0, 1 << 28);
    door_open(limit_setting(0));
    begin();
    uint64_t sum = workers_run(threads, work);
    if (wrong != 0)
        die(1, "an object had lost what it leads to when its finalizer ran");
    // (A thread drops its objects at its end.)
    if (finalized > threads * rounds + (threads - 1) * kept)
        die(1, "finalizers ran of objects that are kept");
    result_begin(sum);
    object_field(2 * (kept + rounds) * threads);
    field("finalized", finalized);
    return door_end();
}
