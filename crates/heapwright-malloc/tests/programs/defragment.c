/*
 * Blocks of many sizes; one in four survives, spread over all slabs. The program moves the blocks
 * whose slabs could be emptied, until there are none. Then the memory of the other blocks must be
 * free, and the contents unchanged.
 *
 *   beside   another thread allocates and frees meanwhile, and steals slabs
 *   two      two threads, each with half of the blocks, move them at the same time
 *   dead     a thread that has ended has left well-filled slabs of the same sizes
 *   never    no block is to be moved
 */
#include "check.h"
#include <heapwright.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BLOCKS 200000
#define MOST 1500
#define LEFT 20000

static struct {
    unsigned char *at;
    size_t size;
} blocks[BLOCKS];
static void *left[LEFT];

/* The blocks from `first` to `last`, and the figures about them. */
struct part {
    size_t first, last, live, moved, moved_last;
};

static const char *mode = "";
static atomic_bool over;
static pthread_barrier_t sparse_now, go_on, dense_now;

static bool is(const char *what)
{
    return strcmp(mode, what) == 0;
}

static void *beside(void *nothing)
{
    unsigned char *some[500] = { 0 };
    uint64_t seed = 7;
    while (!atomic_load(&over)) {
        unsigned char **one = &some[next_random(&seed) % 500];
        free(*one);
        size_t size = 16 + next_random(&seed) % MOST;
        CHECK((*one = malloc(size)) != NULL);
        paint(*one, size, 3);
    }
    for (int i = 0; i < 500; i++)
        free(some[i]);
    return nothing;
}

static void *leave_some(void *nothing)
{
    uint64_t seed = 9;
    for (size_t i = 0; i < LEFT; i++)
        CHECK((left[i] = malloc(16 + next_random(&seed) % MOST)) != NULL);
    for (size_t i = 0; i < LEFT; i++) {
        if (next_random(&seed) % 8 < 3) {
            free(left[i]);
            left[i] = NULL;
        }
    }
    return nothing;
}

/* Moves the blocks that hw_should_move names. Returns their number. */
static size_t pass(const struct part *part)
{
    size_t moved = 0;
    for (size_t i = part->first; i < part->last; i++) {
        unsigned char *old = blocks[i].at;
        if (old == NULL || !hw_should_move(old))
            continue;
        unsigned char *new = hw_malloc_uncached(blocks[i].size);
        CHECK(new != NULL && new != old);
        CHECK(malloc_usable_size(new) >= blocks[i].size);
        memcpy(new, old, blocks[i].size);
        hw_free_uncached(old);
        blocks[i].at = new;
        moved++;
    }
    return moved;
}

static void *run(void *mine)
{
    struct part *part = mine;
    uint64_t seed = 1 + part->first;
    for (size_t i = part->first; i < part->last; i++) {
        blocks[i].size = 16 + next_random(&seed) % MOST;
        CHECK((blocks[i].at = malloc(blocks[i].size)) != NULL);
        paint(blocks[i].at, blocks[i].size, i);
    }
    for (size_t i = part->first; i < part->last; i++) {
        if (next_random(&seed) % 4 != 0) {
            free(blocks[i].at);
            blocks[i].at = NULL;
        } else {
            part->live += malloc_usable_size(blocks[i].at);
        }
    }
    malloc_trim(0);
    pthread_barrier_wait(&sparse_now);
    pthread_barrier_wait(&go_on);
    for (int i = 0; i < 6; i++) {
        part->moved_last = pass(part);
        part->moved += part->moved_last;
        /* Longer than a survey stays in use. */
        usleep(150000);
    }
    malloc_trim(0);
    pthread_barrier_wait(&dense_now);
    pthread_barrier_wait(&go_on);
    for (size_t i = part->first; i < part->last; i++) {
        if (blocks[i].at != NULL)
            CHECK(is_painted(blocks[i].at, blocks[i].size, i));
        free(blocks[i].at);
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count > 1)
        mode = words[1];
    int parts = is("two") ? 2 : 1;
    memset(blocks, 1, sizeof blocks);
    memset(left, 0, sizeof left);
    CHECK(pthread_barrier_init(&sparse_now, NULL, (unsigned)parts + 1) == 0);
    CHECK(pthread_barrier_init(&go_on, NULL, (unsigned)parts + 1) == 0);
    CHECK(pthread_barrier_init(&dense_now, NULL, (unsigned)parts + 1) == 0);
    pthread_t other, threads[2];
    if (is("dead")) {
        CHECK(pthread_create(&other, NULL, leave_some, NULL) == 0);
        pthread_join(other, NULL);
    }
    long before = resident_kib();
    struct part part[2] = { { 0 }, { 0 } };
    for (int i = 0; i < parts; i++) {
        part[i].first = (size_t)i * (BLOCKS / parts);
        part[i].last = part[i].first + BLOCKS / parts;
        CHECK(pthread_create(&threads[i], NULL, run, &part[i]) == 0);
    }
    pthread_barrier_wait(&sparse_now);
    long sparse = resident_kib() - before;
    if (is("beside"))
        CHECK(pthread_create(&other, NULL, beside, NULL) == 0);
    pthread_barrier_wait(&go_on);
    pthread_barrier_wait(&dense_now);
    atomic_store(&over, true);
    if (is("beside"))
        pthread_join(other, NULL);
    hw_purge();
    long dense = resident_kib() - before;
    long live = (long)((part[0].live + part[1].live) / 1024);
    size_t moved = part[0].moved + part[1].moved;
    printf("live %ld, sparse %ld, dense %ld KiB; %zu blocks moved of %d, %zu in the last pass\n", live, sparse, dense,
           moved, BLOCKS / 4, part[0].moved_last + part[1].moved_last);
    struct hw_statistics now;
    CHECK(hw_estimate_stats(&now, sizeof now) == sizeof now);
    CHECK(now.live_bytes >= (uint64_t)live * 1024 && now.rss == 0);
    pthread_barrier_wait(&go_on);
    for (int i = 0; i < parts; i++)
        pthread_join(threads[i], NULL);
    if (is("never")) {
        CHECK(moved == 0);
    } else {
        CHECK(sparse > 2 * live);
        /* In each of forty classes a thread may have a slab that is not full. */
        CHECK(dense < live * 5 / 4 || ((is("beside") || is("two")) && dense < live * 4 / 3));
        /* One block in four of each slab is left, and three slabs in four are emptied, the
         * sparsest. (Each of two threads learns only of its own slabs. The number of slabs with
         * blocks of both depends on the schedule, and is larger on a busy machine.) */
        CHECK(moved > BLOCKS / 4 / (is("two") ? 3 : 2) && moved < BLOCKS / 4 * 3 / 4);
        CHECK(is("beside") || part[0].moved_last + part[1].moved_last == 0);
    }
    CHECK(!hw_should_move(NULL) && !hw_should_move(&now));
    void *large = hw_malloc_uncached(1 << 20);
    CHECK(large != NULL && !hw_should_move(large));
    hw_free_uncached(large);
    hw_free_uncached(NULL);
    errno = 0;
    CHECK(hw_malloc_uncached(SIZE_MAX) == NULL && errno == ENOMEM);
    return 0;
}
