/*
 *   caches_raise K
 *
 * 32 threads take and give back blocks, 4096 times each, while the number of shared caches rises
 * from K (0: threads share none). Blocks go from thread to thread, and so from cache to cache.
 */
#include "heapwright.h"
#include "stamped.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 32, ROUNDS = 4096, BOX = 256, SHARED_MOST = 1024, TSDS_COUNT_MAX = -202 };

#pragma weak hw_raise_shared_caches
#pragma weak hw_get_stats

static _Atomic(void *) box[BOX];
static atomic_int done;

static void *work(void *argument)
{
    uint64_t state = (uintptr_t)argument * 104729 + 7;
    for (int i = 0; i < ROUNDS; i++) {
        void *block = stamped(some_size(&state), 5);
        if (i % 4 == 0)
            block = atomic_exchange(&box[next_random(&state) % BOX], block);
        if (block)
            give_back(block, 5);
    }
    atomic_fetch_add(&done, 1);
    return NULL;
}

static void start(pthread_t *threads)
{
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
}

/* The caches that were ever used are between `least` and `most`. */
static void used(size_t least, size_t most)
{
    struct hw_statistics statistics;
    CHECK(hw_get_stats(&statistics, sizeof statistics) > 0);
    CHECK(statistics.caches_shared >= most);
    CHECK(statistics.caches_touched >= least && statistics.caches_touched <= most);
}

static void finish(pthread_t *threads)
{
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    size_t count = strtoul(argv[1], NULL, 10);
    CHECK(hw_raise_shared_caches != NULL);
    pthread_t threads[THREADS];

    free(malloc(1));
    CHECK(hw_raise_shared_caches(0) == count);
    start(threads);
    if (count == 0) {
        CHECK(hw_raise_shared_caches(8) == 0);
        CHECK(mallopt(TSDS_COUNT_MAX, 8) == 0);
    } else {
        /* The number is never lowered. */
        CHECK(hw_raise_shared_caches(1) == count);
        /* The number is raised in small steps, as long as threads run. */
        size_t now = count;
        while (atomic_load(&done) < THREADS && now < count + 40 && now < SHARED_MOST) {
            CHECK(hw_raise_shared_caches(now + 1) == now + 1);
            now++;
            usleep(200);
        }
        if (now + 3 <= SHARED_MOST) {
            CHECK(mallopt(TSDS_COUNT_MAX, (int)now + 3) == 1);
            CHECK(hw_raise_shared_caches(0) == now + 3);
        }
        CHECK(mallopt(TSDS_COUNT_MAX, 0) == 0 && mallopt(TSDS_COUNT_MAX, -5) == 0);
    }
    finish(threads);
    if (count > 0) {
        /* New threads get the caches in turn, so all of a few caches are used. */
        size_t now = hw_raise_shared_caches(0);
        used(count < THREADS ? count : THREADS, now);
        /* More caches than the maximum. */
        CHECK(hw_raise_shared_caches(1 << 20) == SHARED_MOST);
        CHECK(mallopt(TSDS_COUNT_MAX, SHARED_MOST + 1) == 0);
        CHECK(mallopt(TSDS_COUNT_MAX, SHARED_MOST) == 1);
        start(threads);
        finish(threads);
        used(THREADS, SHARED_MOST);
    }
    for (size_t i = 0; i < BOX; i++)
        if (box[i])
            give_back(box[i], 5);
    return 0;
}
