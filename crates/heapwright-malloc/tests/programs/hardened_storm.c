/*
 * Threads allocate, resize, hand over and free blocks with checked contents. Signal handlers
 * allocate and free small blocks meanwhile. Threads end, and the process forks. Words: the seconds,
 * and the parts: s signals, c short threads, f children, t malloc_trim.
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

struct block {
    size_t size;
    unsigned char byte;
    unsigned char *at;
};

enum { SHARED = 1024, MINE = 100, KEPT = 24, THREADS = 3 };
static _Atomic(struct block *) shared[SHARED];
static atomic_int stop;
static int short_threads, trims;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t some_size(uint64_t random)
{
    static const size_t most[] = { 200, 200, 200, 200, 1100, 1100, 20000, 300000 };
    return (random >> 8) % most[random % 8];
}

static void look(const unsigned char *at, size_t size, unsigned char byte)
{
    CHECK(size == 0 || (at[0] == byte && memcmp(at, at + 1, size - 1) == 0));
}

static struct block *make(uint64_t random)
{
    struct block *block = malloc(sizeof *block);
    CHECK(block != NULL);
    block->size = some_size(random);
    block->byte = (unsigned char)(random >> 40);
    if (random >> 50 & 1) {
        block->at = calloc(1, block->size);
        CHECK(block->at != NULL);
        look(block->at, block->size, 0);
    } else {
        size_t align = (size_t)16 << (random >> 51) % 8;
        block->at = random >> 60 & 1 ? malloc(block->size) : memalign(align, block->size);
        CHECK(block->at != NULL);
    }
    CHECK(block->size == 0 || malloc_usable_size(block->at) == block->size);
    if (block->size != 0)
        memset(block->at, block->byte, block->size);
    return block;
}

static void unmake(struct block *block)
{
    if (block == NULL)
        return;
    look(block->at, block->size, block->byte);
    free(block->at);
    free(block);
}

static void change(struct block *block, uint64_t random)
{
    size_t size = random >> 30 & 1 ? block->size + 1 + random % 5000 : 1 + some_size(random);
    block->at = realloc(block->at, size);
    CHECK(block->at != NULL);
    look(block->at, size < block->size ? size : block->size, block->byte);
    block->size = size;
    memset(block->at, block->byte, size);
}

/* A handler's blocks, of sizes that fast paths serve. Null is allowed: it waits for no lock. */
static _Thread_local struct { unsigned char *volatile at; size_t size; } kept[KEPT];
static _Thread_local uint64_t handlers_state;
static _Thread_local int depth;

static void handler(int number)
{
    (void)number;
    int error = errno;
    if (depth < 3) {
        depth++;
        if (handlers_state == 0)
            handlers_state = (uintptr_t)&handlers_state;
        for (uint64_t i = next(&handlers_state) % 8 + 2; i > 0; i--) {
            uint64_t random = next(&handlers_state);
            int at = (int)(random % KEPT);
            unsigned char *block = kept[at].at;
            kept[at].at = NULL;
            if (block) {
                size_t size = kept[at].size;
                look(block, size, (unsigned char)size);
                free(block);
                continue;
            }
            size_t size = 1 + (random >> 20) % 100;
            block = malloc(size);
            if (block == NULL)
                continue;
            memset(block, (int)size, size);
            /* Another handler may have come in between. */
            if (kept[at].at) {
                free(block);
            } else {
                kept[at].size = size;
                kept[at].at = block;
            }
        }
        depth--;
    }
    errno = error;
}

static void *work(void *argument)
{
    uint64_t state = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
    struct block *mine[MINE] = { NULL };
    for (long i = 0; !stop && (!short_threads || i < 3000); i++) {
        uint64_t random = next(&state);
        struct block **one = &mine[(random >> 8) % MINE];
        void *many[40];
        size_t size = 1 + (random >> 20) % 1100;
        switch (random % 6) {
        case 0:
        case 1:
            unmake(*one);
            *one = make(next(&state));
            break;
        case 2:
            if (*one)
                change(*one, next(&state));
            break;
        case 3:
            *one = atomic_exchange(&shared[(random >> 20) % SHARED], *one);
            break;
        case 4:
            for (int at = 0; at < 40; at++) {
                CHECK((many[at] = malloc(size)) != NULL);
                memset(many[at], at, size);
            }
            for (int at = 0; at < 40; at++) {
                look(many[at], size, (unsigned char)at);
                free(many[at]);
            }
            break;
        default:
            for (int at = 0; at < 30; at++)
                free(malloc(1 + size / 11));
            break;
        }
        if (trims && i % 5000 == 0)
            malloc_trim(0);
    }
    for (int at = 0; at < MINE; at++)
        unmake(mine[at]);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int at = 0; at < KEPT; at++)
        free(kept[at].at);
    return NULL;
}

static void child(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(30);
        short_threads = 1;
        work((void *)(uintptr_t)getpid());
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, (void *)1) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    CHECK(status == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    time_t end = time(NULL) + atoi(argv[1]);
    short_threads = strchr(argv[2], 'c') != NULL;
    trims = strchr(argv[2], 't') != NULL;
    if (strchr(argv[2], 's')) {
        struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
        static const int signals[] = { SIGALRM, SIGVTALRM, SIGPROF };
        static const int timers[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
        for (int i = 0; i < 3; i++) {
            struct itimerval every = { { 0, 250 + 70 * i }, { 0, 250 } };
            CHECK(sigaction(signals[i], &action, NULL) == 0);
            CHECK(setitimer(timers[i], &every, NULL) == 0);
        }
    }
    pthread_t threads[THREADS];
    uintptr_t number = 1;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)number++) == 0);
    while (time(NULL) < end) {
        if (strchr(argv[2], 'f'))
            child();
        for (int i = 0; short_threads && i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
            CHECK(pthread_create(&threads[i], NULL, work, (void *)number++) == 0);
        }
        struct timespec pause = { 0, 10000000 };
        nanosleep(&pause, NULL);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        unmake(shared[i]);
    return 0;
}
