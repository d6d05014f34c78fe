/*
 *   caches_signals fast|all SECONDS [THREADS [runs]]
 *
 * Signal handlers allocate and free, in threads that do nothing else, either. Each thread has a
 * timer of its own, so that a handler interrupts malloc itself again and again. Blocks go from
 * handlers to the threads and back; all have stamps.
 *
 * With `fast`, the threads take and give back single blocks, which a cache's lists nearly always
 * serve. With `all`, chains also go to the central lists, and units come and go.
 *
 * A small reserve serves a handler that has interrupted a slow path. The handler must cope with
 * null. No bound is tested for that here, because other processes may delay slow paths.
 * (`cache/central.rs` tests the reserve.) A handler that interrupted no slow path is always served.
 *
 * Prints the number of handled signals, and the longest time of a handler.
 */
#include "interrupted.h"
#include "stamped.h"
#include <stdatomic.h>

enum { MOST_THREADS = 16, HELD = 64, POST = 32 };

static atomic_int stop;
static atomic_ulong handled;
/* Calls in handlers that found no memory: the reserve for them is small. */
static atomic_ulong refused;
static atomic_ulong slowest_us;
static int all;
/* Blocks on their way from handlers to threads, and from threads to handlers. */
static _Atomic(void *) post[POST];
static __thread void *held[HELD];
static __thread uint64_t handler_state;

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A block for a handler, or null. */
static void *taken(size_t size, uint64_t number)
{
    void *block = malloc(size);
    if (!block) {
        atomic_fetch_add(&refused, 1);
        return NULL;
    }
    stamp_block(block, size, number);
    return block;
}

static void handler(int number)
{
    (void)number;
    int error = errno;
    uint64_t began = now_us();
    for (int i = 0; i < 4; i++) {
        size_t at = next_random(&handler_state) % HELD;
        if (held[at])
            give_back(held[at], 2);
        size_t size = next_random(&handler_state) % 600 + STAMPED_LEAST;
        held[at] = taken(only_runs ? some_size(&handler_state) : size, 2);
    }
    void *block = atomic_exchange(&post[next_random(&handler_state) % POST], taken(100, 3));
    if (block)
        give_back(block, 3);
    uint64_t took = now_us() - began;
    if (took > atomic_load(&slowest_us))
        atomic_store(&slowest_us, took);
    atomic_fetch_add(&handled, 1);
    errno = error;
}

static void *thread(void *argument)
{
    uint64_t state = (uintptr_t)argument * 7919 + 1;
    handler_state = state + 1;
    free(malloc(1));
    timer_t timer = interrupt_me(150000);
    enum { SLOTS = 2000 };
    static __thread void *slots[SLOTS];
    while (!atomic_load(&stop)) {
        if (!all) {
            for (int i = 0; i < 1000; i++) {
                size_t size = next_random(&state) % 300 + STAMPED_LEAST;
                give_back(stamped(size, 4), 4);
            }
        } else {
            for (int i = 0; i < 1000; i++) {
                size_t at = next_random(&state) % SLOTS;
                if (slots[at])
                    give_back(slots[at], 4);
                slots[at] = stamped(some_size(&state), 4);
            }
        }
        void *block = atomic_exchange(&post[next_random(&state) % POST], stamped(200, 3));
        if (block)
            give_back(block, 3);
    }
    leave_me_alone(timer);
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i])
            give_back(slots[i], 4);
    for (size_t i = 0; i < HELD; i++)
        if (held[i])
            give_back(held[i], 2);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    all = !strcmp(argv[1], "all");
    size_t count = argc > 3 ? strtoul(argv[3], NULL, 10) : 4;
    CHECK(count <= MOST_THREADS);
    only_runs = argc > 4 && !strcmp(argv[4], "runs");
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[MOST_THREADS];
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, (void *)(i + 1)) == 0);
    sleep((unsigned)strtoul(argv[2], NULL, 10));
    atomic_store(&stop, 1);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < POST; i++) {
        void *block = atomic_exchange(&post[i], NULL);
        if (block)
            give_back(block, 3);
    }
    printf("%lu handled, the slowest in %lu us; of their requests %lu were refused\n",
           atomic_load(&handled), atomic_load(&slowest_us), atomic_load(&refused));
    CHECK(atomic_load(&handled) > 4);
    unsigned long before = atomic_load(&refused);
    handler_state = 1;
    for (int i = 0; i < 100; i++)
        CHECK(raise(SIGUSR1) == 0);
    CHECK(atomic_load(&refused) == before);
    return 0;
}
