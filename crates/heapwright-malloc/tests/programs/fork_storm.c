/*
 * fork in a program whose other threads never stop allocating. Each child allocates, frees its
 * parent's blocks, starts a thread and ends. It must neither hang nor find a block changed.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 4, KEPT = 300, CHILDREN = 120 };
static atomic_int stop;
static struct {
    char *block;
    size_t size;
} kept[KEPT];

static void *churn(void *argument)
{
    uint64_t state = (uintptr_t)argument * 7919 + 1;
    enum { SLOTS = 200 };
    char *slots[SLOTS] = { NULL };
    while (!atomic_load(&stop)) {
        size_t at = next_random(&state) % SLOTS;
        size_t size = next_random(&state) % (next_random(&state) % 50 ? 600 : 100000) + 1;
        free(slots[at]);
        slots[at] = malloc(size);
        CHECK(slots[at] != NULL);
        slots[at][0] = slots[at][size - 1] = 1;
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i]);
    return NULL;
}

static void *in_the_child(void *argument)
{
    for (size_t i = 0; i < 500; i++) {
        char *p = malloc(i * 10 + 1);
        CHECK(p != NULL);
        memset(p, 3, i * 10 + 1);
        free(p);
    }
    free(argument);
    return malloc(50);
}

static void child(int number)
{
    for (size_t i = 0; i < KEPT; i++)
        CHECK(is_painted(kept[i].block, kept[i].size, i));
    for (size_t i = 0; i < KEPT; i += 2)
        free(kept[i].block);
    char *blocks[400];
    for (size_t i = 0; i < 400; i++) {
        blocks[i] = malloc(i * 37 + 1);
        CHECK(blocks[i] != NULL);
        paint(blocks[i], i * 37 + 1, i);
    }
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_create(&thread, NULL, in_the_child, malloc(100)) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    free(result);
    for (size_t i = 0; i < 400; i++) {
        CHECK(is_painted(blocks[i], i * 37 + 1, i));
        free(blocks[i]);
    }
    for (size_t i = 1; i < KEPT; i += 2)
        CHECK(is_painted(kept[i].block, kept[i].size, i));
    if (number % 10 == 0) {
        /* A child of the child. */
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            free(malloc(100));
            _exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    if (number % 3 == 0)
        exit(0);
    _exit(0);
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < KEPT; i++) {
        kept[i].size = i * 41 % 5000 + (i % 50 == 0 ? 100000 : 1);
        kept[i].block = malloc(kept[i].size);
        CHECK(kept[i].block != NULL);
        paint(kept[i].block, kept[i].size, i);
    }
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* A child that hangs dies of this alarm. */
            alarm(60);
            child(i);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < KEPT; i++) {
        CHECK(is_painted(kept[i].block, kept[i].size, i));
        free(kept[i].block);
    }
    return 0;
}
