// Blocks with a stamp, so that memory handed out twice is noticed.
//
//   | stamp | ........ a byte in each page ........ | stamp |      the block
//   at, size, stamp                                                what its holder knows
//
// The stamp is a random number that no other block has. It is written to the first and to the last
// eight bytes, and the holder keeps a copy. If two threads get the same memory, one overwrites the
// other's stamp, and the other notices. Blocks of fewer than eight bytes have a part of the stamp.
//
// A byte of each page is written, too, so that the memory is resident: allocators are compared by
// used memory.
//
// The requested live bytes and their peak are kept, too. A thread adds its changes when they reach
// LIVE_STEP bytes, so the peak is exact to this amount for each thread.

#ifndef BLOCKS_H
#define BLOCKS_H

#include "inside.h"

#ifndef LIVE_STEP
#define LIVE_STEP 4096
#endif

static _Thread_local long live_change;
static long live_now, live_peak;

static inline void live_flush(void) {
    long now = __atomic_add_fetch(&live_now, live_change, __ATOMIC_RELAXED);
    long peak = __atomic_load_n(&live_peak, __ATOMIC_RELAXED);
    live_change = 0;
    while (now > peak && !__atomic_compare_exchange_n(&live_peak, &peak, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static inline void live_changes(long bytes) {
    live_change += bytes;
    if (live_change >= LIVE_STEP || live_change <= -LIVE_STEP)
        live_flush();
}

struct block {
    char *at;
    size_t size;
    uint64_t stamp;
};

static inline void block_write(struct block *b) {
    size_t stamped = b->size < 8 ? b->size : 8;
    for (size_t at = PAGE; at < b->size; at += PAGE)
        b->at[at] = 1;
    memcpy(b->at, &b->stamp, stamped);
    memcpy(b->at + b->size - stamped, &b->stamp, stamped);
    // In a block of 8 to 15 bytes the ends overlap, and the first wins.
    memcpy(b->at, &b->stamp, stamped);
}

_Noreturn static inline void block_is_wrong(const struct block *b, const char *what) {
    fprintf(stderr, "%s: %s: block of %zu bytes at %p\n", program_name, what, b->size, (void *)b->at);
    exit(3);
}

static inline void block_check(const struct block *b) {
    size_t stamped = b->size < 8 ? b->size : 8;
    int same = memcmp(b->at, &b->stamp, stamped) == 0;
    if (b->size >= 16)
        same &= memcmp(b->at + b->size - 8, &b->stamp, 8) == 0;
    if (!same)
        block_is_wrong(b, "memory was handed out twice, or changed");
}

// Puts memory into a holder's slot.
static inline void block_hold(struct block *b, void *at, size_t size, uint64_t *random) {
    *b = (struct block){ at, size, next_random(random) };
    live_changes((long)size);
    block_write(b);
}

static inline void block_make(struct block *b, size_t size, uint64_t *random) {
    block_hold(b, timed_malloc(size), size, random);
}

static inline void block_drop(struct block *b) {
    block_check(b);
    live_changes(-(long)b->size);
    timed_free(b->at);
    b->at = NULL;
}

#endif
