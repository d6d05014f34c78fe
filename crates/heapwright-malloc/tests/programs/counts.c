/*
 * Counts of a thread's calls for memory: hw_count_begin, hw_count_end, hw_count_sites.
 *
 * The functions are weak, as in a program that also runs without heapwright. Without heapwright the
 * program counts nothing. (A program that is linked with the library needs only the header.)
 */
#include "check.h"
#include "heapwright.h"
#include <malloc.h>
#include <pthread.h>

#pragma weak hw_count_begin
#pragma weak hw_count_end
#pragma weak hw_count_sites
#pragma weak hw_heap_new
#pragma weak hw_heap_alloc
#pragma weak hw_heap_free
#pragma weak hw_heap_destroy

/* A budget, as a test has it: at most so many blocks, and no block that stays. */
static void parse(void)
{
    char *words[8];
    for (int i = 0; i < 8; i++)
        words[i] = strdup("word");
    for (int i = 0; i < 8; i++)
        free(words[i]);
}

static void a_budget_holds(void)
{
    hw_counts counts;
    CHECK(hw_count_begin(0));
    parse();
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations <= 8 && counts.peak_bytes <= 40 && counts.kept_bytes == 0);
}

/* All calls that make blocks count, with their requested bytes, not with the blocks' sizes. */
static void each_call_counts(void)
{
    hw_counts counts;
    void *aligned;
    char *before = malloc(1000);
    CHECK(hw_count_begin(0));
    void *blocks[] = {malloc(1), malloc(0), calloc(3, 7), aligned_alloc(64, 64), memalign(32, 33),
                      realloc(NULL, 5), reallocarray(NULL, 2, 9), valloc(10), malloc(100000),
                      malloc(3 << 20)};
    CHECK(posix_memalign(&aligned, 4096, 11) == 0);
    size_t sum = 1 + 0 + 21 + 64 + 33 + 5 + 18 + 10 + 100000 + (3 << 20) + 11;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    free(aligned);
    free(NULL);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 11 && counts.frees == 11 && counts.reallocations == 0);
    CHECK(counts.bytes == sum && counts.peak_bytes == sum && counts.kept_bytes == 0);
    CHECK(hw_count_begin(0));
    free(before);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 0 && counts.frees == 1 && counts.peak_bytes == 0);
    CHECK(counts.kept_bytes <= -1000 && counts.kept_bytes >= -1024);
}

static void resizes_count_what_they_add(void)
{
    hw_counts counts;
    CHECK(hw_count_begin(0));
    char *block = malloc(100);
    memset(block, 7, 100);
    size_t sizes[] = {101, 90, 5000, 4990, 200000, 300000, 3 << 20, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = realloc(block, sizes[i]);
        CHECK(block && block[0] == 7 && block[89] == 7);
    }
    errno = 0;
    CHECK(realloc(block, PTRDIFF_MAX) == NULL && errno == ENOMEM);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 1 && counts.reallocations == 8 && counts.frees == 0);
    CHECK(counts.bytes == 100 + 1 + 4910 + 195010 + 100000 + (3 << 20) - 300000);
    CHECK(counts.peak_bytes == 3 << 20 && counts.kept_bytes == 100);
    CHECK(hw_count_begin(0));
    CHECK(realloc(block, 0) == NULL);
    CHECK(hw_count_end(&counts, sizeof counts) && counts.frees == 1 && counts.allocations == 0);
}

static void inner_counts_are_the_outer_ones_too(void)
{
    hw_counts inner, outer;
    CHECK(hw_count_begin(0));
    char *kept = malloc(10);
    CHECK(hw_count_begin(0));
    free(malloc(50));
    free(kept);
    CHECK(hw_count_end(&inner, sizeof inner));
    kept = malloc(30);
    CHECK(hw_count_end(&outer, sizeof outer));
    CHECK(inner.allocations == 1 && inner.frees == 2 && inner.peak_bytes == 50);
    CHECK(inner.kept_bytes == -10);
    CHECK(outer.allocations == 3 && outer.frees == 2 && outer.bytes == 90);
    CHECK(outer.peak_bytes == 60 && outer.kept_bytes == 30);
    free(kept);
    for (int i = 0; i < 16; i++)
        CHECK(hw_count_begin(0));
    errno = 0;
    CHECK(!hw_count_begin(0) && errno == EAGAIN);
    free(malloc(1));
    for (int i = 0; i < 16; i++)
        CHECK(hw_count_end(&outer, sizeof outer) && outer.allocations == 1);
    errno = 0;
    CHECK(!hw_count_end(&outer, sizeof outer) && errno == EINVAL && outer.allocations == 0);
    CHECK(!hw_count_begin(2) && errno == EINVAL);
    /* A shorter struct gets its own fields, a longer struct also zeros. */
    struct {
        hw_counts counts;
        uint64_t more;
    } longer = {.more = 1};
    CHECK(hw_count_begin(0) && hw_count_end(&longer.counts, sizeof longer) && longer.more == 0);
    inner.frees = 77;
    CHECK(hw_count_begin(0) && hw_count_end(&inner, 16) && inner.frees == 77);
    CHECK(hw_count_begin(0) && hw_count_end(NULL, 0));
}

static __attribute__((noinline)) void *ask_large(void)
{
    void *block = malloc(5000);
    OPAQUE(block);
    return block;
}

static __attribute__((noinline)) void *ask_small(void)
{
    void *block = malloc(10);
    OPAQUE(block);
    return block;
}

static uint64_t last_bytes;
static size_t has_stacks;

static bool look(const hw_count_site *site, void *context)
{
    int *seen = context;
    CHECK(site->bytes <= last_bytes);
    last_bytes = site->bytes;
    /* A static program without frame pointers has no stacks: all calls count as one stack's. */
    if (site->depth <= 1)
        CHECK(site->allocations == 8 && site->bytes == 15050);
    else if (*seen == 0)
        CHECK(site->allocations == 3 && site->bytes == 15000 && site->frames[0]);
    else
        CHECK(site->allocations == 5 && site->bytes == 50 && site->frames[0]);
    has_stacks = site->depth > 1;
    free(malloc(100));
    ++*seen;
    return true;
}

static bool stop(const hw_count_site *site, void *context)
{
    ++*(int *)context;
    return site == NULL;
}

static void stacks_say_who_asks(void)
{
    hw_counts counts;
    int seen = 0, stopped = 0;
    CHECK(hw_count_begin(HW_COUNT_STACKS));
    CHECK(hw_count_begin(0));
    /* (The loops are volatile, so that the compiler keeps one call in each.) */
    for (volatile int i = 0; i < 3; i++)
        free(ask_large());
    for (volatile int i = 0; i < 5; i++)
        free(ask_small());
    CHECK(hw_count_sites(look, &seen) == 0);
    CHECK(hw_count_end(&counts, sizeof counts));
    last_bytes = UINT64_MAX;
    size_t sites = hw_count_sites(look, &seen);
    CHECK(sites == 1 + has_stacks && seen == (int)sites);
    CHECK(hw_count_sites(stop, &stopped) == sites && stopped == 1);
    CHECK(hw_count_sites(NULL, NULL) == sites);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 8 && counts.bytes == 15050 && counts.peak_bytes == 5000);
    CHECK(hw_count_sites(look, NULL) == 0);
}

static void *given;

static void *other(void *unused)
{
    (void)unused;
    hw_counts counts;
    for (int i = 0; i < 1000; i++)
        free(malloc(i));
    CHECK(hw_count_begin(0));
    for (int i = 0; i < 1000; i++)
        free(malloc(i));
    free(given);
    given = malloc(70);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 1001 && counts.frees == 1001 && counts.peak_bytes < 1000);
    /* The thread ends with an open count. */
    CHECK(hw_count_begin(HW_COUNT_STACKS));
    free(malloc(8));
    return NULL;
}

static void *frees_and_makes(void *unused)
{
    (void)unused;
    free(given);
    given = malloc(80000);
    return NULL;
}

/* Each thread counts by itself, and blocks go from one thread to another. */
static void threads_count_for_themselves(void)
{
    hw_counts counts;
    given = malloc(60);
    CHECK(hw_count_begin(0));
    for (int round = 0; round < 10; round++) {
        pthread_t threads[3];
        CHECK(pthread_create(&threads[0], NULL, other, NULL) == 0);
        CHECK(pthread_join(threads[0], NULL) == 0);
    }
    hw_counts inner;
    CHECK(hw_count_begin(0));
    free(given);
    CHECK(hw_count_end(&inner, sizeof inner) && inner.frees == 1 && inner.kept_bytes <= -70);
    CHECK(hw_count_end(&counts, sizeof counts));
    /* (pthread_create may allocate.) */
    CHECK(counts.allocations < 100);
    /* Another thread's block may get the address of a block that was made here. */
    CHECK(hw_count_begin(0));
    given = malloc(100000);
    int64_t had = malloc_usable_size(given);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, frees_and_makes, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    int64_t has = malloc_usable_size(given);
    CHECK(hw_count_begin(0));
    free(given);
    CHECK(hw_count_end(&inner, sizeof inner) && inner.frees == 1);
    /* (If both blocks have the same size, the count cannot tell them apart.) */
    CHECK(inner.kept_bytes == -has || had == has);
    CHECK(hw_count_end(&counts, sizeof counts));
    /* So many blocks that their records take more than a page. */
    static void *blocks[20000];
    CHECK(hw_count_begin(0));
    for (int i = 0; i < 20000; i++)
        blocks[i] = malloc(i % 300);
    for (int i = 0; i < 20000; i++)
        free(blocks[(i * 7919) % 20000]);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 20000 && counts.frees == 20000 && counts.kept_bytes == 0);
}

static void heaps_are_not_counted(void)
{
    hw_counts counts;
    hw_heap *heap = hw_heap_new();
    CHECK(heap);
    CHECK(hw_count_begin(0));
    void *block = hw_heap_alloc(heap, 100), *large = hw_heap_alloc(heap, 100000);
    hw_heap_free(heap, block);
    free(large);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.allocations == 0 && counts.frees == 0 && counts.kept_bytes == 0);
    /* realloc of a heap's block gives a block of that heap, or a new block. */
    CHECK(hw_count_begin(0));
    block = realloc(hw_heap_alloc(heap, 100), 5000);
    CHECK(block);
    free(block);
    CHECK(hw_count_end(&counts, sizeof counts));
    CHECK(counts.reallocations == 0 && counts.allocations == counts.frees && counts.kept_bytes == 0);
    hw_heap_destroy(heap);
}

int main(void)
{
    if (!hw_count_begin)
        return 0;
    free(malloc(24));
    a_budget_holds();
    each_call_counts();
    resizes_count_what_they_add();
    inner_counts_are_the_outer_ones_too();
    stacks_say_who_asks();
    threads_count_for_themselves();
    heaps_are_not_counted();
    /* Afterwards the thread allocates as before. */
    for (int i = 0; i < 1000; i++)
        free(malloc(i));
    return 0;
}
