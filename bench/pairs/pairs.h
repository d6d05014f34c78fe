// What the pairs share: a clock, a fast random number generator with a fixed
// seed (so that every allocator sees the same requests in the same order), a
// distribution of small sizes, and the one line they print, `ns/pair X`.
//
// A pair is one malloc and one free. These programs time the pairs alone, by
// their own clock: not the start of the program, not the blocks made before.
// The race's workloads do something with their memory and are timed from
// outside; here the two calls are all there is, in one pattern a program.
//
// Every block is written before it is freed: an allocator that hands out
// untouched pages pays for them in every row alike.

#ifndef PAIRS_H
#define PAIRS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline uint64_t next_random(uint64_t *state) {
    // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Mostly what programs ask for: three in four at most 128 bytes, nearly all
// others at most 1 KiB, one in 64 up to 8 KiB.
static inline size_t small_size(uint64_t *state) {
    uint64_t r = next_random(state);
    unsigned kind = r & 63;
    r >>= 8;
    if (kind < 48)
        return 8 + r % 121;
    if (kind < 63)
        return 129 + r % 896;
    return 1025 + r % 7168;
}

static inline void *must(void *p) {
    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static inline void report(double ns_a_pair) { printf("ns/pair %.2f\n", ns_a_pair); }

#endif
