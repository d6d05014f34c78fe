/*
 * The checked functions in threads, in a signal handler, in children of fork and vfork, and after
 * exec; and the loader's `dlerror` afterwards.
 *
 *   around           all of them, correctly
 *   around thread    a thread writes out of bounds
 *   around signal    a signal handler writes out of bounds
 *   around vfork     a child of vfork writes out of bounds
 *   around fork      a child of fork writes out of bounds
 */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { BLOCK = 48, THREADS = 8, ROUNDS = 20000 };

static const char *self;
static char source[2 * BLOCK];
static char *shared_block;
static volatile sig_atomic_t caught;

static void *work(void *seed)
{
    size_t size = 16 * (1 + (size_t)seed);
    char *blocks[32] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        char **block = &blocks[i % 32];
        free(*block);
        *block = malloc(size);
        memcpy(*block, source, size < sizeof source ? size : sizeof source);
        CHECK(snprintf(*block, size, "%d", i) > 0 && atoi(*block) == i);
        strcpy(*block + size - 4, "end");
    }
    for (int i = 0; i < 32; i++)
        free(blocks[i]);
    return NULL;
}

static void *too_much(void *unused)
{
    (void)unused;
    memcpy(shared_block, source, BLOCK + 1);
    return NULL;
}

static void handle(int signal)
{
    (void)signal;
    memcpy(shared_block, source, BLOCK);
    memset(shared_block, 0, BLOCK);
    strcpy(shared_block, "caught");
    caught++;
}

static void handle_wrongly(int signal)
{
    (void)signal;
    memset(shared_block, 0, BLOCK + 1);
}

static int wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

__attribute__((noinline)) static pid_t start_by_vfork(int beyond)
{
    pid_t child = vfork();
    if (child == 0) {
        memcpy(shared_block, source, (size_t)(BLOCK + beyond));
        execl(self, self, "child", NULL);
        _exit(9);
    }
    return child;
}

static void all_right(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, handle);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    work((void *)(size_t)3);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    while (!caught)
        pause();
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    signal(SIGALRM, SIG_IGN);

    CHECK(wait_for(start_by_vfork(0)) == 0);
    pid_t child = fork();
    if (child == 0) {
        work((void *)(size_t)1);
        _exit(0);
    }
    CHECK(wait_for(child) == 0);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    self = words[0];
    /* The library looked up names that this C library may lack. The program sees no such error. */
    CHECK(dlerror() == NULL);
    memset(source, 's', sizeof source);
    shared_block = malloc(BLOCK);
    if (strcmp(how, "child") == 0) {
        work((void *)(size_t)2);
        return 0;
    }
    pthread_t thread;
    if (!*how) {
        all_right();
        return 0;
    }
    if (strcmp(how, "thread") == 0) {
        CHECK(pthread_create(&thread, NULL, too_much, NULL) == 0 && pthread_join(thread, NULL) == 0);
    } else if (strcmp(how, "signal") == 0) {
        signal(SIGUSR1, handle_wrongly);
        raise(SIGUSR1);
    } else if (strcmp(how, "vfork") == 0) {
        CHECK(WTERMSIG(wait_for(start_by_vfork(1))) == SIGABRT);
        return 0;
    } else if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            too_much(NULL);
            _exit(0);
        }
        CHECK(WTERMSIG(wait_for(child)) == SIGABRT);
        return 0;
    }
    check_failed(how, 0, "this is noticed");
}
