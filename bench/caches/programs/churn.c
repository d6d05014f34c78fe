// churn CLOCK TOTAL AT_ONCE BLOCKS
//
// Many short threads: TOTAL in all, AT_ONCE at a time. Each allocates BLOCKS blocks of 16 bytes to
// 4 KiB, leaves each eighth for a later thread, and frees the others. It also frees the blocks that
// earlier threads left for it.
//
// Measures the memory after the first 10 threads and after the last one. So that these 10 do
// everything that the others do, thread 10 does the work of thread 0, and so on.

#include "result.h"

enum { FIRST = 10, PARCELS = 64, MOST_BLOCKS = 4096, DOUBLINGS = 8 };

static size_t blocks_each;
static struct block *blocks;
static struct block parcels[PARCELS];
static pthread_mutex_t parcels_lock = PTHREAD_MUTEX_INITIALIZER;

static void live_shortly(size_t slot, size_t index) {
    struct block *mine = blocks + slot * blocks_each;
    uint64_t random = stream(index % FIRST);
    for (size_t i = 0; i < blocks_each; i++)
        block_make(&mine[i], mixed_size(&random, DOUBLINGS), &random);
    for (size_t i = 0; i < blocks_each; i += 8) {
        size_t at = next_random(&random) % PARCELS;
        pthread_mutex_lock(&parcels_lock);
        struct block found = parcels[at];
        parcels[at] = mine[i];
        pthread_mutex_unlock(&parcels_lock);
        mine[i] = found;
    }
    for (size_t i = 0; i < blocks_each; i++)
        if (mine[i].at != NULL)
            block_drop(&mine[i]);
}

int main(int argc, char **argv) {
    program_name = "churn";
    if (argc != 5)
        die(2, "usage: churn CLOCK TOTAL AT_ONCE BLOCKS");
    size_t total = number(argv[2], "number of threads", FIRST + 1, 100000000);
    size_t at_once = number(argv[3], "number of threads at once", 1, MOST_THREADS);
    blocks_each = number(argv[4], "number of blocks", 8, MOST_BLOCKS);
    threads_prepare(at_once);
    blocks = table(at_once * blocks_each * sizeof *blocks);
    clock_prepare(argv[1]);
    begin();
    threads_in_turn(0, FIRST, at_once, live_shortly);
    struct resident first = resident();
    size_t first_stacks = stack_bytes();
    threads_in_turn(FIRST, total - FIRST, at_once, live_shortly);
    result_begin(at_once);
    field("total", (double)total);
    field("anonymous_first", (double)first.anonymous);
    field("stacks_first", (double)first_stacks);
    result_end();
    for (size_t i = 0; i < PARCELS; i++)
        if (parcels[i].at != NULL)
            block_drop(&parcels[i]);
    return 0;
}
