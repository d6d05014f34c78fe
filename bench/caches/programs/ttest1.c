// ttest1 CLOCK TOTAL AT_ONCE ACTIONS LIMIT
//
// After t-test1, ptmalloc's test, which the review of scudo's registries used. TOTAL threads in
// all, AT_ONCE at a time: a new thread replaces an ended one. Each works on its own bin of blocks
// of 1 to LIMIT bytes. Half of the ACTIONS empty a place of the bin. The others fill a place, which
// is emptied first if it is full. Of the fills, 0.4 % call memalign, 1.6 % calloc, up to 7.8 %
// realloc, and the others malloc.
//
// The first AT_ONCE threads wait for each other half way, so that at the peak all bins exist, in
// any order of the threads.
//
// All bins together have places for 16 MiB of live blocks, but each has at least 20. With the
// review's limit of 100,000 bytes and 40 threads, a thread's blocks take half a megabyte.

#define LIVE_STEP 65536
#include "result.h"

enum { BIN_BYTES = 16 << 20, LEAST_PLACES = 20, MOST_PLACES = 4096 };

static size_t actions, limit, places, first_threads;
static pthread_barrier_t half_way;
// A bin for each slot.
static struct block *bins;

static void empty_place(struct block *place) {
    if (place->at != NULL)
        block_drop(place);
}

static void fill_place(struct block *place, uint64_t *random) {
    uint64_t r = next_random(random);
    size_t size = 1 + (size_t)((r >> 10) % limit);
    unsigned kind = (unsigned)(r & 1023);
    if (kind < 4) {
        size_t alignment = (size_t)16 << 2 * kind;
        empty_place(place);
        char *at = timed_memalign(alignment, size);
        block_hold(place, at, size, random);
        if ((uintptr_t)at % alignment != 0)
            block_is_wrong(place, "memalign gave memory that is not aligned");
    } else if (kind < 20) {
        empty_place(place);
        char *at = timed_calloc(size);
        for (size_t byte = 0; byte < size; byte += byte < 64 ? 1 : PAGE)
            if (at[byte] != 0)
                block_is_wrong(&(struct block){ at, size, 0 }, "calloc gave memory that is not zero");
        block_hold(place, at, size, random);
    } else if (kind < 100 && place->at != NULL) {
        struct block old = *place;
        block_check(&old);
        live_changes(-(long)old.size);
        old.at = timed_realloc(old.at, size);
        // The block's end was cut off, or is now in the middle.
        size_t kept = old.size < size ? old.size : size;
        if (memcmp(old.at, &old.stamp, kept < 8 ? kept : 8) != 0)
            block_is_wrong(&old, "realloc lost what was in the block");
        block_hold(place, old.at, size, random);
    } else {
        empty_place(place);
        block_make(place, size, random);
    }
}

static void work(size_t slot, size_t index) {
    struct block *bin = bins + slot * places;
    uint64_t random = stream(index);
    for (size_t i = 0; i < actions; i++) {
        if (i == actions / 2 && index < first_threads)
            pthread_barrier_wait(&half_way);
        uint64_t r = next_random(&random);
        struct block *place = &bin[(r >> 32) % places];
        if (r & 1)
            fill_place(place, &random);
        else
            empty_place(place);
    }
    for (size_t i = 0; i < places; i++)
        empty_place(&bin[i]);
}

int main(int argc, char **argv) {
    program_name = "ttest1";
    if (argc != 6)
        die(2, "usage: ttest1 CLOCK TOTAL AT_ONCE ACTIONS LIMIT");
    size_t total = number(argv[2], "number of threads", 1, 100000000);
    size_t at_once = number(argv[3], "number of threads at once", 1, MOST_THREADS);
    actions = number(argv[4], "number of actions", 1, 1000000000);
    limit = number(argv[5], "limit of sizes", 1, 1 << 30);
    // A bin is half full, of blocks of half the limit.
    places = BIN_BYTES / (limit / 4 + 1) / at_once;
    places = places < LEAST_PLACES ? LEAST_PLACES : places > MOST_PLACES ? MOST_PLACES : places;
    threads_prepare(at_once);
    first_threads = at_once < total ? at_once : total;
    pthread_barrier_init(&half_way, NULL, (unsigned)first_threads);
    bins = table(at_once * places * sizeof *bins);
    clock_prepare(argv[1]);
    begin();
    threads_in_turn(0, total, at_once, work);
    result_begin(at_once);
    field("total", (double)total);
    result_end();
    return 0;
}
