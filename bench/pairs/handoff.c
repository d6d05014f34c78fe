// handoff [LANES [MESSAGES]]: LANES producers, each with a consumer of its own.
// A producer allocates messages of mixed small sizes and passes them through a
// ring of 4096; the consumer frees them. Stands for pipelines and work queues:
// every single free is remote, and a pair includes the block's way home.

#include "pairs.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { RING = 4096, BATCH = 64 };

struct channel {
    _Alignas(64) _Atomic size_t head; // written by the producer
    _Alignas(64) _Atomic size_t tail; // written by the consumer
    _Alignas(64) char *slots[RING];
    long messages;
    uint64_t random;
};

static void *produce(void *argument) {
    struct channel *channel = argument;
    size_t head = 0;
    for (long i = 0; i < channel->messages; i++) {
        size_t size = small_size(&channel->random);
        char *message = must(malloc(size));
        message[0] = (char)i;
        while (head - atomic_load_explicit(&channel->tail, memory_order_acquire) == RING)
            sched_yield();
        channel->slots[head % RING] = message;
        head++;
        if (head % BATCH == 0 || i + 1 == channel->messages)
            atomic_store_explicit(&channel->head, head, memory_order_release);
    }
    return NULL;
}

static void *consume(void *argument) {
    struct channel *channel = argument;
    size_t tail = 0;
    long sum = 0;
    while (tail < (size_t)channel->messages) {
        size_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
        if (head == tail) {
            sched_yield();
            continue;
        }
        while (tail != head) {
            char *message = channel->slots[tail % RING];
            sum += message[0];
            free(message);
            tail++;
        }
        atomic_store_explicit(&channel->tail, tail, memory_order_release);
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    long lanes = argc > 1 ? atol(argv[1]) : 1;
    long messages = argc > 2 ? atol(argv[2]) : 8 * 1000 * 1000;
    double start = now_ns();
    struct channel *channels = must(aligned_alloc(64, (size_t)lanes * sizeof *channels));
    memset(channels, 0, (size_t)lanes * sizeof *channels);
    pthread_t *threads = must(malloc((size_t)lanes * 2 * sizeof *threads));
    for (long i = 0; i < lanes; i++) {
        channels[i].messages = messages;
        channels[i].random = (uint64_t)i + 7;
        if (pthread_create(&threads[2 * i], NULL, produce, &channels[i]) != 0 ||
            pthread_create(&threads[2 * i + 1], NULL, consume, &channels[i]) != 0) {
            fprintf(stderr, "cannot start a thread\n");
            return 1;
        }
    }
    for (long i = 0; i < 2 * lanes; i++)
        pthread_join(threads[i], NULL);
    report((now_ns() - start) / ((double)lanes * messages));
    free(threads);
    free(channels);
    return 0;
}
