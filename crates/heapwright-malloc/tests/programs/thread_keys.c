/*
 * Destructors of pthread keys that allocate and free, made before and after the
 * heap's own key, in all the rounds that POSIX allows.
 */
#include "check.h"
#include <limits.h>
#include <pthread.h>

enum { KEYS = 40, THREADS = 200 };
static pthread_key_t keys[KEYS];

static void destroy(void *value)
{
    struct {
        size_t key, round, size;
    } *data = value;
    CHECK(data->key < KEYS);
    for (size_t i = 0; i < 20; i++) {
        char *p = malloc(i * 50 + 1);
        CHECK(p != NULL);
        p = realloc(p, i * 100 + 1);
        CHECK(p != NULL);
        free(p);
    }
    if (data->round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS) {
        /* The destructor runs again: the value of the next round is another block. */
        size_t key = data->key, round = data->round + 1;
        free(data);
        data = calloc(1, 100 + key * 10);
        CHECK(data != NULL && data->size == 0);
        data->key = key;
        data->round = round;
        CHECK(pthread_setspecific(keys[key], data) == 0);
        return;
    }
    free(data);
}

/* Before the program's first allocation. */
__attribute__((constructor(101))) static void early(void)
{
    for (size_t i = 0; i < KEYS / 2; i++)
        CHECK(pthread_key_create(&keys[i], destroy) == 0);
}

static void *thread(void *argument)
{
    for (size_t i = 0; i < KEYS; i++) {
        size_t *data = calloc(3, sizeof *data);
        CHECK(data != NULL);
        data[0] = i;
        CHECK(pthread_setspecific(keys[i], data) == 0);
    }
    return argument;
}

int main(void)
{
    free(malloc(1));
    for (size_t i = KEYS / 2; i < KEYS; i++)
        CHECK(pthread_key_create(&keys[i], destroy) == 0);
    pthread_t threads[20];
    for (size_t i = 0; i < THREADS; i += 20) {
        for (size_t j = 0; j < 20; j++)
            CHECK(pthread_create(&threads[j], NULL, thread, NULL) == 0);
        for (size_t j = 0; j < 20; j++)
            CHECK(pthread_join(threads[j], NULL) == 0);
    }
    /* The keys of main, too, when it ends as a thread. */
    thread(NULL);
    pthread_exit(NULL);
}
