// flat NAME PRODUCERS CONSUMERS SIZE ORDER LIVE_MIB TRAFFIC_MIB
//
// Producers allocate, consumers free and never allocate. The producers must reuse the freed
// blocks, or memory grows with the traffic. (The xmalloc pattern, adapted to measure memory.)
//
//     producer --batch of 64--> ring of 4 batches --> consumer's shelf
//                                                       puts the new block in a
//                                                       place of the shelf, frees
//                                                       the block that was there
//
// The shelves hold LIVE_MIB of blocks, so constant costs do not hide the figure,
// and memory is in use while the traffic goes through it. SIZE 0 is a mix of 16
// bytes to 2 KiB. ORDER is "fifo" (the place is the next one) or "random".
//
// Two figures come from the resident memory above the baseline at the traffic's end. One divides it
// by the peak of live bytes, the ring's included. The other divides it by the same memory after a
// tenth of the traffic.

#include "bounds.h"
#include <stdatomic.h>

enum { BATCH = 64, RING = 4, THREADS = 8 };

struct item {
    char *block;
    size_t size;
};

struct batch {
    struct item items[BATCH];
};

static struct batch ring[RING];
static unsigned head, filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, work = PTHREAD_COND_INITIALIZER;

static atomic_size_t live, most_live, passed;
static size_t size, traffic, places;
static unsigned producers, consumers, producing;
static int random_order;
static struct item *shelves;
static size_t samples[3];

static size_t mean(void) { return size != 0 ? size : 16 * 127 / 7 * 3 / 2; }

static void became_live(size_t bytes) {
    size_t now = atomic_fetch_add(&live, bytes) + bytes;
    size_t most = atomic_load(&most_live);
    while (now > most && !atomic_compare_exchange_weak(&most_live, &most, now))
        ;
}

// The thread that passes a tenth, a half or all of the traffic takes a measurement.
static void pass(size_t bytes) {
    size_t before = atomic_fetch_add(&passed, bytes), after = before + bytes;
    size_t marks[] = { traffic / 10, traffic / 2, traffic };
    for (int i = 0; i < 3; i++)
        if (before < marks[i] && after >= marks[i])
            samples[i] = resident();
}

static void *produce(void *argument) {
    uint64_t random = (uintptr_t)argument + 1;
    while (atomic_load(&passed) < traffic) {
        struct batch batch;
        size_t bytes = 0;
        for (int i = 0; i < BATCH; i++) {
            size_t s = size != 0 ? size : mixed_size(&random, 7);
            batch.items[i] = (struct item){ block(s), s };
            bytes += s;
        }
        became_live(bytes);
        pthread_mutex_lock(&lock);
        while (filled == RING)
            pthread_cond_wait(&room, &lock);
        ring[(head + filled++) % RING] = batch;
        pthread_cond_signal(&work);
        pthread_mutex_unlock(&lock);
        pass(bytes);
    }
    pthread_mutex_lock(&lock);
    producing--;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *consume(void *argument) {
    size_t number = (uintptr_t)argument;
    struct item *shelf = shelves + number * places;
    uint64_t random = 1000 + number;
    size_t next = 0;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (filled == 0 && producing > 0)
            pthread_cond_wait(&work, &lock);
        if (filled == 0) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        struct batch batch = ring[head];
        head = (head + 1) % RING;
        filled--;
        pthread_cond_signal(&room);
        pthread_mutex_unlock(&lock);
        size_t bytes = 0;
        for (int i = 0; i < BATCH; i++) {
            struct item *place = &shelf[random_order ? next_random(&random) % places : next];
            next = (next + 1) % places;
            free(place->block);
            bytes += place->size;
            *place = batch.items[i];
        }
        atomic_fetch_sub(&live, bytes);
    }
}

int main(int argc, char **argv) {
    program_name = "flat";
    if (argc != 8)
        die(2, "usage: flat NAME PRODUCERS CONSUMERS SIZE fifo|random LIVE_MIB TRAFFIC_MIB");
    producing = producers = (unsigned)atoi(argv[2]);
    consumers = (unsigned)atoi(argv[3]);
    size = strtoul(argv[4], NULL, 10);
    random_order = strcmp(argv[5], "random") == 0;
    traffic = strtoul(argv[7], NULL, 10) << 20;
    if (producers < 1 || producers > THREADS || consumers < 1 || consumers > THREADS)
        die(2, "flat: 1 to 8 producers and consumers");
    places = (strtoul(argv[6], NULL, 10) << 20) / mean() / consumers;
    shelves = table(consumers * places * sizeof *shelves);
    size_t empty = resident();
    pthread_t threads[2 * THREADS];
    for (uintptr_t i = 0; i < consumers; i++)
        threads[i] = start(consume, (void *)i);
    for (uintptr_t i = 0; i < producers; i++)
        threads[consumers + i] = start(produce, (void *)i);
    for (unsigned i = 0; i < producers + consumers; i++)
        pthread_join(threads[i], NULL);

    double most = (double)atomic_load(&most_live);
    double at[3];
    for (int i = 0; i < 3; i++)
        at[i] = (double)(samples[i] - empty);
    printf("# %s: live %.1f MiB; resident at 10 %%, 50 %%, 100 %% of %zu MiB: %.1f, %.1f, %.1f MiB\n", argv[1],
           most / MIB, traffic >> 20, at[0] / MIB, at[1] / MIB, at[2] / MIB);
    figure(argv[1], ": resident / live", at[2] / most, 1.3, "x");
    figure(argv[1], ": growth from 10 % on", at[2] / at[0], 1.1, "x");
    return 0;
}
