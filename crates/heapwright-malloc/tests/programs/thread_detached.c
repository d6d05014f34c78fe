/*
 * Detached threads. They allocate to their end, also in destructors of keys. Then their stacks
 * vanish, with their thread-local variables. The kernel must have nothing left to write there.
 */
#include "stamped.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4000, AT_ONCE = 8, BLOCKS = 40, ROUNDS = 3 };
static pthread_key_t key;
static atomic_int running;

/* Except in the last round, the destructor sets its value again. So it runs after the destructors
   of values that were set once. */
static void late(void *value)
{
    uintptr_t left = (uintptr_t)value - 1;
    give_back(stamped(STAMPED_LEAST + 10 * left, 2), 2);
    if (left > 1)
        CHECK(pthread_setspecific(key, (void *)left) == 0);
    else
        atomic_fetch_sub(&running, 1);
}

static void *brief(void *argument)
{
    uint64_t state = (uintptr_t)argument * 7919 + 3;
    void *mine[BLOCKS];
    CHECK(pthread_setspecific(key, (void *)(uintptr_t)(ROUNDS + 1)) == 0);
    for (size_t i = 0; i < BLOCKS; i++)
        mine[i] = stamped(next_random(&state) % 2000 + STAMPED_LEAST, 1);
    for (size_t i = 0; i < BLOCKS; i++)
        give_back(mine[i], 1);
    return NULL;
}

int main(void)
{
    struct timespec moment = {0, 100000};
    pthread_attr_t detached;
    CHECK(pthread_key_create(&key, late) == 0);
    CHECK(pthread_attr_init(&detached) == 0);
    CHECK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        while (atomic_load(&running) >= AT_ONCE)
            nanosleep(&moment, NULL);
        atomic_fetch_add(&running, 1);
        CHECK(pthread_create(&thread, &detached, brief, (void *)i) == 0);
    }
    while (atomic_load(&running) > 0)
        nanosleep(&moment, NULL);
    return 0;
}
