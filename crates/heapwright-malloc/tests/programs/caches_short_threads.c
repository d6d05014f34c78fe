/*
 *   caches_short_threads COUNT CACHES
 *
 * COUNT threads, eight at a time. Each takes and gives back blocks of many sizes, and leaves one
 * block for a later thread. Memory must be the same as after ten threads, except for the free
 * blocks that CACHES caches keep.
 */
#include "stamped.h"
#include <pthread.h>
#include <stdatomic.h>

enum { AT_ONCE = 8, FIRST = 10, BOX = 64, BLOCKS = 40 };
static _Atomic(void *) box[BOX];

static void *brief(void *argument)
{
    uint64_t state = (uintptr_t)argument * 7919 + 3;
    void *mine[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        mine[i] = stamped(next_random(&state) % 2000 + STAMPED_LEAST, 1);
    void *other = atomic_exchange(&box[next_random(&state) % BOX], mine[0]);
    if (other)
        give_back(other, 1);
    for (size_t i = 1; i < BLOCKS; i++)
        give_back(mine[i], 1);
    return NULL;
}

static void run(size_t from, size_t count)
{
    pthread_t threads[AT_ONCE];
    for (size_t i = 0; i < count; i += AT_ONCE) {
        size_t now = count - i < AT_ONCE ? count - i : AT_ONCE;
        for (size_t j = 0; j < now; j++)
            CHECK(pthread_create(&threads[j], NULL, brief, (void *)(from + i + j)) == 0);
        for (size_t j = 0; j < now; j++)
            CHECK(pthread_join(threads[j], NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    long caches = strtol(argv[2], NULL, 10);
    size_t count = strtoul(argv[1], NULL, 10);
    resident_kib();
    run(1, FIRST);
    long few = resident_kib();
    run(1 + FIRST, count);
    long many = resident_kib();
    /* A cache fills slowly, up to two chains of each of the 60 classes used here: less than a MiB.
     * There are the shared caches, and those of the threads that run at once, which later threads
     * take over. Caches that stay behind would take at least a page a thread: 400 MB. */
    if (many > few + 1024 * (AT_ONCE + caches)) {
        fprintf(stderr, "%ld KiB after %d threads, %ld KiB after %zu\n", few, FIRST, many, count);
        return 1;
    }
    return 0;
}
