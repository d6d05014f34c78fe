/* The functions of heapwright.h. */
#include "check.h"
#include <heapwright.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

int main(void);

enum { COUNT = 2000 };
static hw_heap *shared;
static void *blocks[4][COUNT];

static void *worker(void *argument)
{
    size_t me = (size_t)argument;
    for (size_t i = 0; i < COUNT; i++) {
        blocks[me][i] = hw_heap_alloc(shared, i + 1);
        CHECK(blocks[me][i] != NULL);
        paint(blocks[me][i], i + 1, me * COUNT + i);
    }
    return NULL;
}

struct count {
    size_t blocks, bytes, stop_after, seen_address;
    uintptr_t last, searched;
    int ordered;
};

static bool visit(const hw_block *block, void *context)
{
    struct count *count = context;
    if ((uintptr_t)block->address < count->last)
        count->ordered = 0;
    count->last = (uintptr_t)block->address;
    if (block->in_use) {
        count->blocks++;
        count->bytes += block->size;
        if (count->last == count->searched)
            count->seen_address++;
    }
    return count->stop_after == 0 || count->blocks < count->stop_after;
}

static void heaps(void)
{
    hw_heap *a = hw_heap_new(), *b = hw_heap_new();
    CHECK(a != NULL && b != NULL && a != b);
    for (size_t size = 0; size < 200000; size = size * 2 + 1) {
        char *p = hw_heap_alloc(a, size), *q = hw_heap_alloc(b, size);
        CHECK(p != NULL && q != NULL && is_aligned(p, 16) && is_aligned(q, 16));
        paint(p, size, 1);
        paint(q, size, 2);
        CHECK(is_painted(p, size, 1) && is_painted(q, size, 2));
        CHECK(malloc_usable_size(p) >= size);
        CHECK(hw_owns(p) && hw_owns(q));
        CHECK(hw_describe(p).owner != hw_describe(q).owner);
        errno = 3;
        hw_heap_free(a, p);
        hw_heap_free(b, q);
        CHECK(errno == 3);
        char *z = hw_heap_alloc_zeroed(a, 1, size);
        CHECK(z != NULL && is_zero(z, size));
        /* A block of a heap may also go back through free. */
        free(z);
        for (size_t alignment = 1; alignment <= 1 << 16; alignment *= 8) {
            char *x = hw_heap_alloc_aligned(b, size, alignment);
            CHECK(x != NULL && is_aligned(x, alignment));
            memset(x, 1, size);
        }
    }
    errno = 0;
    CHECK(hw_heap_alloc(a, SIZE_MAX) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(hw_heap_alloc_zeroed(a, SIZE_MAX / 2 + 1, 2) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(hw_heap_alloc_aligned(a, 10, 24) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(hw_heap_alloc_aligned(a, 10, 0) == NULL && errno == EINVAL);
    hw_heap_free(a, NULL);
    hw_heap_destroy(a);
    hw_heap_destroy(b);
    hw_heap_destroy(NULL);

    /* One heap, four threads, and another thread destroys it. */
    shared = hw_heap_new();
    CHECK(shared != NULL);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < COUNT; j++)
            CHECK(is_painted(blocks[i][j], j + 1, i * COUNT + j));
    for (size_t j = 0; j < COUNT; j += 2)
        hw_heap_free(shared, blocks[1][j]);
    hw_heap_destroy(shared);

    /* Made and destroyed many times, heaps do not use memory up. */
    for (int i = 0; i < 300; i++) {
        hw_heap *h = hw_heap_new();
        CHECK(h != NULL);
        for (int j = 0; j < 100; j++) {
            char *p = hw_heap_alloc(h, 10000);
            CHECK(p != NULL);
            memset(p, 1, 10000);
        }
        hw_heap_destroy(h);
    }
    hw_statistics now;
    CHECK(hw_get_stats(&now, sizeof now) == sizeof now);
    CHECK(now.rss < (uint64_t)100 << 20);
}

static void questions(void)
{
    static int data;
    int stack;
    char *p = malloc(100), *large = malloc(1 << 20);
    CHECK(p != NULL && large != NULL);
    CHECK(hw_owns(p) && hw_owns(p + 50) && hw_owns(large) && hw_owns(large + (1 << 19)));
    CHECK(!hw_owns(&stack) && !hw_owns(&data) && !hw_owns((void *)(uintptr_t)main));
    CHECK(!hw_owns(NULL) && !hw_owns("literal"));
    CHECK(hw_object_size(p) == malloc_usable_size(p) && hw_object_size(p + 50) == hw_object_size(p) - 50);
    CHECK(hw_object_size(large + (1 << 19)) == malloc_usable_size(large) - (1 << 19));
    CHECK(hw_object_size(&stack) == SIZE_MAX && hw_object_size(NULL) == SIZE_MAX);

    hw_description d = hw_describe(p);
    CHECK(d.kind == HW_KIND_SMALL && d.block == p && d.offset == 0 && d.size >= 100);
    CHECK(d.size == malloc_usable_size(p));
    CHECK(d.words != NULL && strcmp(d.words, "a small block") == 0);
    CHECK(d.state != HW_STATE_FREE);
    d = hw_describe(p + 77);
    CHECK(d.kind == HW_KIND_SMALL && d.block == p && d.offset == 77);
    d = hw_describe(large + 123456);
    CHECK(d.kind == HW_KIND_LARGE && d.block == large && d.offset == 123456 && d.size >= 1 << 20);
    d = hw_describe(&stack);
    CHECK(d.kind == HW_KIND_FOREIGN && d.block == NULL && d.size == 0 && d.owner == 0);

    /* Any address: nothing is touched, nothing faults. */
    void *hole = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hole != MAP_FAILED);
    CHECK(hw_describe(hole).kind == HW_KIND_FOREIGN);
    munmap(hole, 1 << 20);
    CHECK(hw_describe(hole).kind == HW_KIND_FOREIGN);
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        uintptr_t address = next_random(&state) >> (next_random(&state) % 64);
        d = hw_describe((void *)address);
        CHECK(d.kind <= HW_KIND_METADATA && d.words != NULL);
        CHECK(hw_owns((void *)address) == (d.kind == HW_KIND_SMALL || d.kind == HW_KIND_LARGE));
    }
    for (int shift = 0; shift < 64; shift++) {
        (void)hw_describe((void *)((uintptr_t)1 << shift));
        (void)hw_describe((void *)(((uintptr_t)1 << shift) - 1));
        (void)hw_describe((void *)(0 - ((uintptr_t)1 << shift)));
    }
    /* Every page around a block: some are ours, some are not, some do not exist. */
    for (uintptr_t at = (uintptr_t)p - (64 << 20); at < (uintptr_t)p + (64 << 20); at += 4096)
        (void)hw_describe((void *)at);
    free(large);
    CHECK(hw_describe(large).kind != HW_KIND_LARGE || hw_describe(large).state != HW_STATE_IN_USE);
    free(p);
}

static void walk(void)
{
    enum { HELD = 5000 };
    static void *held[HELD];
    for (size_t i = 0; i < HELD; i++) {
        held[i] = malloc(i % 3000 + 1);
        CHECK(held[i] != NULL);
    }
    struct count count = { .ordered = 1, .searched = (uintptr_t)held[1234] };
    CHECK(hw_heap_walk(visit, &count));
    CHECK(count.ordered);
    CHECK(count.blocks >= HELD);
    CHECK(count.seen_address == 1);
    struct count first = { .ordered = 1, .stop_after = 10 };
    CHECK(!hw_heap_walk(visit, &first));
    CHECK(first.blocks == 10);
    CHECK(hw_heap_walk(NULL, NULL));
    for (size_t i = 0; i < HELD; i++)
        free(held[i]);
}

static void statistics(void)
{
    hw_statistics before, after;
    malloc_trim(0); /* else the block below might lie in memory that was freed and is resident */
    CHECK(hw_get_stats(&before, sizeof before) == sizeof before);
    CHECK(before.pid == (uint64_t)getpid());
    CHECK(strncmp(before.name, "hw_api", 6) == 0 && before.name[15] == 0);
    CHECK(before.page_size == (uint64_t)sysconf(_SC_PAGESIZE));
    char *p = malloc(20 << 20);
    CHECK(p != NULL);
    memset(p, 1, 20 << 20);
    CHECK(hw_get_stats(&after, sizeof after) == sizeof after);
    CHECK(after.live_bytes >= before.live_bytes + (20 << 20));
    CHECK(after.large_bytes >= before.large_bytes + (20 << 20));
    CHECK(after.large_blocks == before.large_blocks + 1);
    CHECK(after.live_blocks >= before.live_blocks + 1);
    CHECK(after.rss >= before.rss + (19 << 20));
    CHECK(after.peak_rss >= after.rss - after.page_size * 64);
    uint64_t parts = after.rss_live + after.rss_rounding + after.rss_partial + after.rss_caches +
                     after.rss_remote + after.rss_lazy + after.rss_metadata + after.rss_pools + after.rss_not_ours;
    CHECK(parts <= after.rss + after.rss / 20 && parts + after.rss / 20 >= after.rss);
    free(p);

    /* An older program has a smaller struct, a newer one a larger. */
    struct {
        hw_statistics known;
        uint64_t more[4];
    } newer;
    memset(&newer, 0xEE, sizeof newer);
    CHECK(hw_get_stats((hw_statistics *)&newer, sizeof newer) == sizeof before);
    CHECK(newer.known.pid == (uint64_t)getpid());
    CHECK(is_zero(newer.more, sizeof newer.more));
    uint64_t older[3] = { 1, 2, 0xEEEE };
    CHECK(hw_get_stats((hw_statistics *)older, 16) == sizeof before);
    CHECK(older[0] == (uint64_t)getpid() && older[2] == 0xEEEE);
}

int main(void)
{
    CHECK(strspn(hw_version(), "0123456789.") == strlen(hw_version()) && strchr(hw_version(), '.'));
    heaps();
    questions();
    walk();
    statistics();
    return 0;
}
