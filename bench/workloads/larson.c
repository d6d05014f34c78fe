// larson THREADS GENERATIONS ROUNDS: a server's thread pool, after Larson and
// Krishnan (1998). Each thread owns a table of 1000 blocks and replaces random
// ones; after its rounds it starts its successor, hands it the table, and
// dies. So most blocks are freed by a thread that did not allocate them, whose
// allocator may have died. Stands for servers that start a thread a
// connection; shows cross-thread frees and the adoption of dead threads' heaps.

#include "workload.h"
#include <pthread.h>

enum { TABLE = 1000 };

struct lane {
    char *blocks[TABLE];
    uint64_t random;
    int generations;
    long rounds;
    pthread_t successor;
    int has_successor;
};

static long threads, generations, rounds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static long running;

static void *serve(void *argument) {
    struct lane *lane = argument;
    for (long i = 0; i < lane->rounds; i++) {
        size_t at = next_random(&lane->random) % TABLE;
        size_t size = small_size(&lane->random);
        free(lane->blocks[at]);
        lane->blocks[at] = must(malloc(size));
        lane->blocks[at][0] = (char)i;
    }
    if (--lane->generations > 0) {
        pthread_t next;
        if (pthread_create(&next, NULL, serve, lane) != 0) {
            fprintf(stderr, "cannot start a thread\n");
            exit(1);
        }
        pthread_detach(next);
        return NULL;
    }
    for (int i = 0; i < TABLE; i++)
        free(lane->blocks[i]);
    pthread_mutex_lock(&lock);
    if (--running == 0)
        pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atol(argv[1]) : 4;
    generations = argc > 2 ? atol(argv[2]) : 50;
    rounds = argc > 3 ? atol(argv[3]) : 40000;
    double start = now_ns();
    running = threads;
    struct lane *lanes = must(calloc((size_t)threads, sizeof *lanes));
    for (long t = 0; t < threads; t++) {
        lanes[t].random = (uint64_t)t + 1;
        lanes[t].generations = (int)generations;
        lanes[t].rounds = rounds;
        pthread_t first;
        if (pthread_create(&first, NULL, serve, &lanes[t]) != 0) {
            fprintf(stderr, "cannot start a thread\n");
            exit(1);
        }
        pthread_detach(first);
    }
    pthread_mutex_lock(&lock);
    while (running > 0)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    report("ns/pair", (now_ns() - start) / ((double)threads * generations * rounds));
    free(lanes);
    return 0;
}
