/* Several threads fork at once, and each child forks on from a thread of its own. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 40 };

static void *nested(void *argument)
{
    (void)argument;
    void *p = malloc(1000);
    CHECK(p != NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        free(p);
        free(malloc(2000));
        _exit(7);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    free(p);
    return NULL;
}

static void *forker(void *argument)
{
    size_t seed = (uintptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char *before = malloc(seed * 100 + 1);
        CHECK(before != NULL);
        paint(before, seed * 100 + 1, seed);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            CHECK(is_painted(before, seed * 100 + 1, seed));
            free(before);
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, nested, NULL) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
            _exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(is_painted(before, seed * 100 + 1, seed));
        free(before);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, forker, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
