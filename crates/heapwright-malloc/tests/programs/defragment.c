/*
 * Blocks of many sizes, of which one in four survives, here and there: moves those whose slabs could be emptied, until
 * there are none, and expects the memory of the others to be free then, and the contents to be as they were.
 * With the word "beside" another thread allocates and frees meanwhile; "never": nothing is to be moved.
 */
#include "check.h"
#include <heapwright.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BLOCKS 200000
#define MOST 1500

static struct {
    unsigned char *at;
    size_t size;
} blocks[BLOCKS];

static atomic_bool over;

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

/* Moves what is to be moved; returns how much. */
static size_t pass(void)
{
    size_t moved = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
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

int main(int count, char **words)
{
    bool is_never = count > 1 && strcmp(words[1], "never") == 0;
    bool is_beside = count > 1 && strcmp(words[1], "beside") == 0;
    uint64_t seed = 1;
    long before = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i].size = 16 + next_random(&seed) % MOST;
        CHECK((blocks[i].at = malloc(blocks[i].size)) != NULL);
        paint(blocks[i].at, blocks[i].size, i);
    }
    size_t live = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (next_random(&seed) % 4 != 0) {
            free(blocks[i].at);
            blocks[i].at = NULL;
        } else {
            live += malloc_usable_size(blocks[i].at);
        }
    }
    pthread_t other;
    if (is_beside)
        CHECK(pthread_create(&other, NULL, beside, NULL) == 0);
    malloc_trim(0);
    long sparse = resident_kib() - before;
    size_t moved = 0;
    for (int i = 0; i < 6; i++) {
        moved += pass();
        /* Longer than a survey is used. */
        usleep(150000);
    }
    atomic_store(&over, true);
    if (is_beside)
        pthread_join(other, NULL);
    malloc_trim(0);
    long dense = resident_kib() - before;
    printf("live %zu, sparse %ld, dense %ld KiB; %zu blocks moved of %d\n", live / 1024, sparse, dense, moved, BLOCKS / 4);
    if (is_never) {
        CHECK(moved == 0);
    } else {
        CHECK(sparse > 2 * (long)(live / 1024));
        CHECK(dense < (long)(live / 1024) * 5 / 4);
        CHECK(moved < BLOCKS / 4 + BLOCKS / 20);
    }
    hw_statistics now;
    CHECK(hw_estimate_stats(&now, sizeof now) == sizeof now);
    CHECK(now.live_bytes >= live && now.rss == 0);
    CHECK(!hw_should_move(NULL) && !hw_should_move(&now));
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].at != NULL)
            CHECK(is_painted(blocks[i].at, blocks[i].size, i));
        free(blocks[i].at);
    }
    void *large = hw_malloc_uncached(1 << 20);
    CHECK(large != NULL && !hw_should_move(large));
    hw_free_uncached(large);
    hw_free_uncached(NULL);
    errno = 0;
    CHECK(hw_malloc_uncached(SIZE_MAX) == NULL && errno == ENOMEM);
    return 0;
}
