/* Handlers of pthread_atfork that allocate, before and after the heap's own. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static void *held[3];
static void allocate(int at)
{
    free(held[at]);
    held[at] = malloc(1000 + (size_t)at * 100000);
    CHECK(held[at] != NULL);
}
static void prepare(void) { allocate(0); }
static void parent(void) { allocate(1); }
static void child(void) { allocate(2); }

/* Registered before the program's first allocation, hence before the heap's. */
__attribute__((constructor(101))) static void early(void)
{
    CHECK(pthread_atfork(prepare, parent, child) == 0);
}

static void *allocating(void *argument)
{
    for (int i = 0; i < 200000; i++)
        free(malloc((size_t)i % 3000));
    return argument;
}

int main(void)
{
    CHECK(pthread_atfork(prepare, parent, child) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocating, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            free(malloc(10));
            _exit(held[2] ? 0 : 1);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
