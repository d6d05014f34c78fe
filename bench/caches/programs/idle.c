// idle CLOCK THREADS BURSTS BLOCKS
//
// THREADS threads, mostly idle, do BURSTS bursts in turn, 2,000 a second in total. In a burst a
// thread allocates BLOCKS blocks of 16 bytes to 4 KiB, waits a millisecond as for an answer, and
// frees them. So one thread or a thousand do the same work, with about the same number of blocks
// live at a time.
//
// Measures the cost of a mostly idle thread: memory after the last burst, while all threads still
// exist.

#include "result.h"

enum { A_SECOND = 2000, MOST_BLOCKS = 4096, DOUBLINGS = 8 };

static size_t threads, bursts, blocks_each;
static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER, may_end = PTHREAD_COND_INITIALIZER;
static size_t done;
static int ends;

static void sleep_until(uint64_t ns) {
    struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void burst(struct block *mine, uint64_t *random) {
    for (size_t i = 0; i < blocks_each; i++)
        block_make(&mine[i], mixed_size(random, DOUBLINGS), random);
    sleep_until(now_ns() + 1000000);
    // Frees in another order than that of the allocations.
    for (size_t i = 0; i < blocks_each; i++) {
        struct block *one = &mine[i * 31 % blocks_each];
        if (one->at != NULL)
            block_drop(one);
    }
    // The blocks that this order misses if BLOCKS is a multiple of 31.
    for (size_t i = 0; i < blocks_each; i++)
        if (mine[i].at != NULL)
            block_drop(&mine[i]);
}

static void idle(size_t slot, size_t index) {
    struct block *mine = blocks + slot * blocks_each;
    for (size_t turn = index; turn < bursts; turn += threads) {
        uint64_t random = stream(turn);
        sleep_until(began_ns + turn * (1000000000u / A_SECOND));
        burst(mine, &random);
    }
    live_flush();
    spent_flush();
    pthread_mutex_lock(&lock);
    if (++done == threads)
        pthread_cond_signal(&all_done);
    while (!ends)
        pthread_cond_wait(&may_end, &lock);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    program_name = "idle";
    if (argc != 5)
        die(2, "usage: idle CLOCK THREADS BURSTS BLOCKS");
    threads = number(argv[2], "number of threads", 1, MOST_THREADS);
    bursts = number(argv[3], "number of bursts", threads, 1000000000);
    blocks_each = number(argv[4], "number of blocks", 1, MOST_BLOCKS);
    threads_prepare(threads);
    blocks = table(threads * blocks_each * sizeof *blocks);
    clock_prepare(argv[1]);
    begin();
    for (size_t i = 0; i < threads; i++)
        thread_start(i, idle, i);
    pthread_mutex_lock(&lock);
    while (done < threads)
        pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
    result_begin(threads);
    field("bursts", (double)bursts);
    result_end();
    pthread_mutex_lock(&lock);
    ends = 1;
    pthread_cond_broadcast(&may_end);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < threads; i++)
        thread_ended();
    return 0;
}
