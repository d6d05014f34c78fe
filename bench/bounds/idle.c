// idle NAME THREADS BLOCKS DOUBLINGS
//
// Threads that once allocated and are now idle, as in a pool after a busy moment. Each allocates
// BLOCKS blocks of 16 bytes to 16 << DOUBLINGS bytes, frees them in random order, and waits. They
// do so one after another, so the peak is one thread's.
//
// A child, made first, does the same without the allocations. The parent's resident memory beyond
// the child's is the heap's, because both processes have the stacks and the C library's part of a
// thread.
//
// Figures: that difference divided by the number of threads, immediately and after two seconds of
// the main thread's allocations.

#include "bounds.h"
#include <sys/wait.h>

enum { MOST_BLOCKS = 100000, MOST_THREADS = 10000 };

static unsigned doublings;
static size_t blocks_each;
static void **blocks;
static int allocates;
static pthread_barrier_t burst_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int ends;

static void *serve(void *argument) {
    uint64_t random = (uintptr_t)argument;
    if (allocates) {
        for (size_t i = 0; i < blocks_each; i++)
            blocks[i] = block(mixed_size(&random, doublings));
        shuffle(blocks, blocks_each, &random);
        for (size_t i = 0; i < blocks_each; i++)
            free(blocks[i]);
    }
    pthread_barrier_wait(&burst_over);
    pthread_mutex_lock(&lock);
    while (!ends)
        pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

// The main thread's work while the others idle: the same in parent and child.
static void be_active(void) {
    static void *mine[1000];
    uint64_t random = 3;
    for (double end = now_ms() + 2000; now_ms() < end; sleep_ms(1)) {
        for (int i = 0; i < 100; i++) {
            void **place = &mine[next_random(&random) % 1000];
            free(*place);
            *place = block(mixed_size(&random, 9));
        }
    }
    for (int i = 0; i < 1000; i++)
        free(mine[i]);
}

struct seen {
    size_t at_once, later;
};

static struct seen live(size_t threads, pthread_t *running) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (size_t t = 0; t < threads; t++) {
        if (pthread_create(&running[t], &small, serve, (void *)(t + 1)) != 0)
            die(2, "cannot start a thread");
        pthread_barrier_wait(&burst_over);
    }
    struct seen seen = { .at_once = resident() };
    be_active();
    seen.later = resident();
    pthread_mutex_lock(&lock);
    ends = 1;
    pthread_cond_broadcast(&over);
    pthread_mutex_unlock(&lock);
    for (size_t t = 0; t < threads; t++)
        pthread_join(running[t], NULL);
    return seen;
}

int main(int argc, char **argv) {
    program_name = "idle";
    if (argc != 5)
        die(2, "usage: idle NAME THREADS BLOCKS DOUBLINGS");
    size_t threads = strtoul(argv[2], NULL, 10);
    blocks_each = strtoul(argv[3], NULL, 10);
    doublings = (unsigned)atoi(argv[4]);
    if (threads < 1 || threads > MOST_THREADS || blocks_each < 1 || blocks_each > MOST_BLOCKS || doublings < 1 || doublings > 20)
        die(2, "idle: 1 to 10000 threads, 1 to 100000 blocks, 1 to 20 doublings");
    blocks = table(blocks_each * sizeof *blocks);
    pthread_t *running = table(threads * sizeof *running);
    pthread_barrier_init(&burst_over, NULL, 2);
    int ends_of_pipe[2];
    if (pipe(ends_of_pipe) != 0)
        die(2, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0)
        die(2, "cannot fork");
    if (child == 0) {
        struct seen seen = live(threads, running);
        if (write(ends_of_pipe[1], &seen, sizeof seen) != sizeof seen)
            die(2, "cannot write to a pipe");
        _exit(0);
    }
    struct seen without;
    close(ends_of_pipe[1]);
    if (read(ends_of_pipe[0], &without, sizeof without) != sizeof without)
        die(2, "the child without allocations failed");
    waitpid(child, NULL, 0);
    allocates = 1;
    struct seen with = live(threads, running);

    double at_once = ((double)with.at_once - (double)without.at_once) / (double)threads / KIB;
    double later = ((double)with.later - (double)without.later) / (double)threads / KIB;
    printf("# %s: %zu threads; resident without allocations %.1f, with %.1f, after 2 s %.1f and %.1f MiB\n", argv[1],
           threads, (double)without.at_once / MIB, (double)with.at_once / MIB, (double)without.later / MIB,
           (double)with.later / MIB);
    figure(argv[1], ": each at once", at_once, 0, "KiB");
    figure(argv[1], ": each after 2 s of others' work", later, 64, "KiB");
    return 0;
}
