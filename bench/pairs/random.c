// random [LIVE [ROUNDS]]: keeps LIVE blocks of mixed small sizes; each round
// frees a random one and allocates another of a random size in its place.
// Stands for a long-running server's heap. With 10,000 live blocks everything
// is in cache and the paths count; with 400,000 each free lands on cold memory,
// and what an allocator must touch there (headers, slab records) decides.
//
// Making the LIVE blocks and freeing them at the end is not timed.

#include "pairs.h"

int main(int argc, char **argv) {
    size_t live = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
    long rounds = argc > 2 ? atol(argv[2]) : 10 * 1000 * 1000;
    uint64_t random = 42;
    char **blocks = must(malloc(live * sizeof *blocks));
    for (size_t i = 0; i < live; i++) {
        size_t size = small_size(&random);
        blocks[i] = must(malloc(size));
        memset(blocks[i], (int)i, size < 64 ? size : 64);
    }
    double start = now_ns();
    for (long i = 0; i < rounds; i++) {
        size_t at = (size_t)(((next_random(&random) >> 32) * live) >> 32);
        size_t size = small_size(&random);
        free(blocks[at]);
        blocks[at] = must(malloc(size));
        blocks[at][0] = (char)i;
    }
    report((now_ns() - start) / (double)rounds);
    for (size_t i = 0; i < live; i++)
        free(blocks[i]);
    free(blocks);
    return 0;
}
