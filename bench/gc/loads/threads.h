// Threads that each do the same load on one heap. The work depends only on the thread's number,
// and the results are added, so the sum does not depend on the threads' order.

#ifndef THREADS_H
#define THREADS_H

#include "door.h"
#include <pthread.h>

enum { MOST_THREADS = 64 };

typedef uint64_t load_work(struct door *door, size_t thread);

struct worker {
    pthread_t thread;
    size_t number;
    load_work *work;
    uint64_t sum;
};

// The frame whose address is the base of the scanned stack; the work is below it.
static __attribute__((noinline)) void *worker_run(void *argument) {
    struct worker *worker = argument;
    struct door *door = door_enter(__builtin_frame_address(0));
    worker->sum = worker->work(door, worker->number);
    door_leave(door);
    return NULL;
}

static inline size_t threads_setting(void) { return setting("threads", 1, 1, MOST_THREADS); }

// The heap's limit in bytes; 0: none. The setting is in KiB.
static inline size_t limit_setting(size_t otherwise) { return setting("limit", otherwise, 0, SIZE_MAX >> 10) << 10; }

// With one thread, the main thread does the work.
static inline uint64_t workers_run(size_t count, load_work *work) {
    struct worker workers[MOST_THREADS];
    for (size_t i = 0; i < count; i++)
        workers[i] = (struct worker){ .number = i, .work = work };
    for (size_t i = 1; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0)
            die(2, "cannot start a thread");
    worker_run(&workers[0]);
    uint64_t sum = workers[0].sum;
    for (size_t i = 1; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].sum;
    }
    return sum;
}

// The heap, the workers, and the first fields of the result.
static inline void load_run(size_t threads, size_t limit, load_work *work) {
    door_open(limit);
    begin();
    result_begin(workers_run(threads, work));
}

#endif
