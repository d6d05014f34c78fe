// crowd NAME THREADS BLOCKS
//
// Threads that allocate a little and wait, as in a server with a thread for each client. Each
// thread allocates BLOCKS blocks of 16 bytes to 2 KiB, frees every fourth, and waits until all
// others have done the same.
//
// Another process runs the same without the preload first. Figure: the peak resident memory of
// this process, at most 1.05 times that of the C library's allocator.

#include "bounds.h"

enum { MOST_BLOCKS = 1000, MOST_THREADS = 10000, DOUBLINGS = 7, STACK = 64 << 10 };

static size_t blocks_each;
static pthread_barrier_t all_are_here;

static void *serve(void *argument) {
    uint64_t random = (uintptr_t)argument;
    void *blocks[MOST_BLOCKS];
    for (size_t i = 0; i < blocks_each; i++) {
        blocks[i] = block(mixed_size(&random, DOUBLINGS));
        if (i % 4 == 3) {
            free(blocks[i - 1]);
            blocks[i - 1] = NULL;
        }
    }
    pthread_barrier_wait(&all_are_here);
    for (size_t i = 0; i < blocks_each; i++)
        free(blocks[i]);
    return NULL;
}

// The peak with this many threads, in MiB.
static double peak(size_t threads) {
    pthread_t *running = table(threads * sizeof *running);
    pthread_barrier_init(&all_are_here, NULL, (unsigned)threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&running[i], &small, serve, (void *)(uintptr_t)(i + 1)) != 0)
            die(2, "cannot start a thread");
    for (size_t i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / KIB;
}

int main(int argc, char **argv) {
    program_name = "crowd";
    if (argc != 4)
        die(2, "usage: crowd NAME THREADS BLOCKS");
    size_t threads = strtoul(argv[2], NULL, 10);
    blocks_each = strtoul(argv[3], NULL, 10);
    if (threads < 1 || threads > MOST_THREADS || blocks_each < 1 || blocks_each > MOST_BLOCKS)
        die(2, "crowd: 1 to 10000 threads, 1 to 1000 blocks");
    if (is_child())
        return child_says(peak(threads));
    double without = in_child(argv, "LD_PRELOAD", NULL);
    figure(argv[1], ": peak", peak(threads), 1.05 * without, "MiB");
    return 0;
}
