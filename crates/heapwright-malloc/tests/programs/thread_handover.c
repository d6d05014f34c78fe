/*
 * Producers allocate, consumers free: no thread frees its own blocks. Memory must not grow, however
 * long that lasts. Blocks that are freed long after their thread has ended are used again, too.
 */
#include "check.h"
#include <pthread.h>

enum { QUEUE = 1000, PER_PRODUCER = 400000, PRODUCERS = 2, CONSUMERS = 2 };
static char *queue[QUEUE];
static size_t head, tail, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *produce(void *argument)
{
    uint64_t state = (uintptr_t)argument * 31 + 5;
    for (size_t i = 0; i < PER_PRODUCER; i++) {
        size_t size = next_random(&state) % 500 + 8;
        if (i % 5000 == 0)
            size += 100000;
        char *p = malloc(size);
        CHECK(p != NULL);
        memcpy(p, &size, sizeof size);
        p[size - 1] = (char)(size * 3);
        if (size == sizeof size)
            memcpy(p, &size, sizeof size);
        pthread_mutex_lock(&lock);
        while (head - tail == QUEUE)
            pthread_cond_wait(&changed, &lock);
        queue[head++ % QUEUE] = p;
        if (head - tail == 1)
            pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    done++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *consume(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (head == tail && done < PRODUCERS)
            pthread_cond_wait(&changed, &lock);
        if (head == tail) {
            pthread_mutex_unlock(&lock);
            return argument;
        }
        char *p = queue[tail++ % QUEUE];
        if (head - tail == QUEUE - 1)
            pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        size_t size;
        memcpy(&size, p, sizeof size);
        CHECK(size >= 8 && size < 110000);
        CHECK(size < 16 || p[size - 1] == (char)(size * 3));
        free(p);
    }
}

enum { LATE = 20000 };
static char *late[8][LATE];

static void *make_late(void *argument)
{
    size_t me = (uintptr_t)argument;
    for (size_t i = 0; i < LATE; i++) {
        late[me][i] = malloc(200);
        CHECK(late[me][i] != NULL);
        paint(late[me][i], 200, i);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[8];
    for (size_t i = 0; i < PRODUCERS; i++)
        CHECK(pthread_create(&threads[i], NULL, produce, (void *)i) == 0);
    for (size_t i = 0; i < CONSUMERS; i++)
        CHECK(pthread_create(&threads[PRODUCERS + i], NULL, consume, NULL) == 0);
    for (size_t i = 0; i < PRODUCERS + CONSUMERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(resident_kib() < 40 * 1024);

    /* 8 x 4 MB from threads that have ended: main frees them, and they are used again, 20 times. */
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 8; i++)
            CHECK(pthread_create(&threads[i], NULL, make_late, (void *)i) == 0);
        for (size_t i = 0; i < 8; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        for (size_t j = 0; j < LATE; j++)
            for (size_t i = 0; i < 8; i++) {
                CHECK(is_painted(late[i][j], 200, j));
                free(late[i][j]);
            }
    }
    CHECK(resident_kib() < 100 * 1024);
    return 0;
}
