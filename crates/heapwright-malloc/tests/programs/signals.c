/*
 * A signal handler allocates while the program does not, which any malloc allows. Another handler
 * runs on an alternative stack, in every thread.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

static atomic_int safe;
static atomic_ulong handled;
static char *kept[64];

static void handler(int number)
{
    (void)number;
    int error = errno;
    if (atomic_load(&safe)) {
        unsigned long n = atomic_fetch_add(&handled, 1);
        free(kept[n % 64]);
        kept[n % 64] = malloc(n % 5000 + 1);
        if (kept[n % 64])
            kept[n % 64][0] = 1;
        free(calloc(10, n % 100 + 1));
    }
    errno = error;
}

static void *thread(void *argument)
{
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    CHECK(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0);
    for (int i = 0; i < 2000; i++) {
        char *p = malloc((size_t)i + 1);
        CHECK(p != NULL);
        free(p);
        CHECK(raise(SIGUSR1) == 0);
    }
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    free(stack.ss_sp);
    return argument;
}

static void own_stack(int number)
{
    (void)number;
    char *p = malloc(300);
    if (p)
        p[299] = 1;
    free(p);
}

int main(void)
{
    struct sigaction action = { .sa_handler = handler };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval every = { { 0, 200 }, { 0, 200 } };
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    volatile double sum = 0;
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 300; i++) {
            char *p = malloc((size_t)(i * 7 + 1));
            CHECK(p != NULL);
            free(p);
        }
        atomic_store(&safe, 1);
        for (int i = 0; i < 200000; i++)
            sum += i * 0.5;
        atomic_store(&safe, 0);
    }
    every = (struct itimerval){ 0 };
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    CHECK(atomic_load(&handled) > 20);

    action.sa_handler = own_stack;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
