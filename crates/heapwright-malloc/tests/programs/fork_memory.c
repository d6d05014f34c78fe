/*
 * A child inherits the caches of threads that it does not have. It must be able to use their
 * memory. Blocks freed in the child are handed out again, and memory does not grow over a chain of
 * generations.
 */
#include "check.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { THREADS = 8, BLOCKS = 2000 };
static pthread_barrier_t filled;
static char *blocks[THREADS][BLOCKS];

static void *fill(void *argument)
{
    size_t me = (uintptr_t)argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[me][i] = malloc(500);
        CHECK(blocks[me][i] != NULL);
        memset(blocks[me][i], 1, 500);
    }
    pthread_barrier_wait(&filled);
    pause();
    return NULL;
}

static void generation(int depth)
{
    if (depth == 0)
        return;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid != 0) {
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return;
    }
    alarm(60);
    /* Frees the blocks of the parent's other threads, and allocates the same amount. */
    for (int round = 0; round < 20; round++)
        for (size_t t = 0; t < THREADS; t++)
            for (size_t i = 0; i < BLOCKS; i++) {
                free(blocks[t][i]);
                blocks[t][i] = malloc(500);
                CHECK(blocks[t][i] != NULL);
                memset(blocks[t][i], depth, 500);
            }
    /* 8 MB of blocks, with much room for the memory around them. */
    CHECK(resident_kib() < 64 * 1024);
    generation(depth - 1);
    _exit(0);
}

int main(void)
{
    CHECK(pthread_barrier_init(&filled, NULL, THREADS + 1) == 0);
    pthread_t thread;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread, NULL, fill, (void *)i) == 0);
    pthread_barrier_wait(&filled);
    generation(12);
    _exit(0);
}
