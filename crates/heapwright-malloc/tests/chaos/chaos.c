/*
 *   chaos SECONDS SEED PLUGIN SCRATCH-FILE [WORD...]
 *
 * Uses one heap in every way at once, and checks the contents of every block:
 *
 *   workers    allocate, free, resize, align, and hand blocks to each other
 *   forkers    two threads that fork; the child checks, frees and resizes what it inherited
 *   spawner    threads that live for a moment, and whose keys' destructors allocate
 *   loader     dlopen and dlclose of a library that allocates
 *   clerk      malloc_trim, mallinfo2, malloc_info, malloc_usable_size, limits of address space
 *   stdio      getline of long lines, fflush(NULL)
 *   signals    a timer for each thread; the handlers allocate if the word `handlers` allows it
 *   refusals   the kernel refuses the library's system calls at random (refusals.h)
 *   watchdog   the main thread (watchdog.h)
 *
 * Words: `handlers`; `patience=MS` (5000). `-workers`, `-forkers`, `-spawner`, `-loader`, `-clerk`,
 * `-stdio`, `-signals`, `-refusals`, `-limits` leave a part out. The seed chooses sizes and orders.
 * Seeds 0, 1, 2, 3 (modulo 4) have neither, refusals, limits, both. The kernel orders the threads,
 * so a seed repeats the mix, but not the very run.
 *
 * Without refusals and limits no request may return NULL. With them, errno is ENOMEM, and a block
 * that realloc did not resize is unchanged. At the end each thread is served again.
 *
 *   chaos start REFUSED after|only [COUNT]
 *
 * The start alone: the kernel refuses that call of the library, and all calls after it or only this
 * one. Each allocation is then right or NULL.
 *
 *   chaos in SURROUNDINGS SEED FOLDER MS STACK: see surroundings.h
 *
 *   block   | seal 8 | seed 8 | size 8 | words of the seed ... | bytes of the seed |
 *           large blocks: the first and the last kilobyte, and a word in each 512 bytes between
 */
#include "surroundings.h"
#include "interrupted.h"
#include <malloc.h>
#include <sys/wait.h>
#include <ucontext.h>

size_t hw_raise_shared_caches(size_t count) __attribute__((weak));

enum { WORKERS = 3, FORKERS = 2, POST = 64, SLOTS = 300, FEW = 60 };

static atomic_int stop, all_started;
static int handlers_allocate, with_signals = 1, with_refusals, with_limits, with_stdio = 1;
static uint64_t seed;
static const char *plugin_path, *scratch_path, *own_path;
static atomic_ulong forks, signals, nulls, opened, short_threads, lowered, lines;

/* ---- blocks ---- */

struct head {
    uint64_t seal, seed, size;
};
enum { LEAST = sizeof(struct head) };

static inline uint64_t mixed(uint64_t seed, uint64_t at)
{
    uint64_t x = (seed ^ at * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}
static inline size_t next_word(size_t at, size_t size)
{
    return size > 8192 && at >= 1024 && at + 2048 < size ? at + 512 : at + 8;
}
static inline uint64_t seal_of(const void *block, uint64_t seed) { return mixed(seed, (uintptr_t)block); }

static void fill(void *block, size_t size, uint64_t seed)
{
    unsigned char *bytes = block;
    *(struct head *)block = (struct head){ seal_of(block, seed), seed, size };
    for (size_t at = LEAST; at + 8 <= size; at = next_word(at, size))
        *(uint64_t *)(bytes + at) = mixed(seed, at);
    for (size_t at = size & ~(size_t)7; at < size; at++)
        bytes[at] = (unsigned char)mixed(seed, at);
}

__attribute__((noreturn)) static void is_wrong(const void *block, const void *home, size_t size, size_t until, size_t at,
                                               uint64_t is, uint64_t asked, const char *what)
{
    say("chaos: %s: block %p of %zu bytes, filled at %p, %zu bytes of it wanted, at %zu: %016lx, not %016lx (thread %d of %d)\n",
        what, block, size, home, until, at, (unsigned long)is, (unsigned long)asked, own_tid(), (int)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0));
    if (!atomic_exchange(&shared->crashed, 1))
        show_all();
    end_at_once(1);
}

/* Checks the words that a block of `size` bytes has below `until`. `home`: the address at which it
 * was filled. */
static void verify_part(const void *block, const void *home, size_t size, size_t until, uint64_t seed, const char *what)
{
    const unsigned char *bytes = block;
    const struct head *head = block;
    if (head->seal != seal_of(home, seed))
        is_wrong(block, home, size, until, 0, head->seal, seal_of(home, seed), what);
    if (head->seed != seed)
        is_wrong(block, home, size, until, 8, head->seed, seed, what);
    if (head->size != size)
        is_wrong(block, home, size, until, 16, head->size, size, what);
    for (size_t at = LEAST; at + 8 <= size && at + 8 <= until; at = next_word(at, size))
        if (*(const uint64_t *)(bytes + at) != mixed(seed, at))
            is_wrong(block, home, size, until, at, *(const uint64_t *)(bytes + at), mixed(seed, at), what);
    for (size_t at = size & ~(size_t)7; at < size && at < until; at++)
        if (bytes[at] != (unsigned char)mixed(seed, at))
            is_wrong(block, home, size, until, at, bytes[at], (unsigned char)mixed(seed, at), what);
}
static void verify(const void *block, size_t size, uint64_t seed, const char *what)
{
    verify_part(block, block, size, size, seed, what);
}

/* Of a block from another thread only the block's own words are known. */
static void verify_given(const void *block)
{
    const struct head *head = block;
    if (head->seal != seal_of(block, head->seed) || head->size < LEAST)
        is_wrong(block, block, head->size, head->size, 0, head->seal, seal_of(block, head->seed), "handed over");
    verify(block, head->size, head->seed, "handed over");
}

static void release(void *block)
{
    *(volatile uint64_t *)block = 0;
    errno = 77;
    free(block);
    CHECK(errno == 77);
}

/* There was no memory: that must be allowed, with the right errno. */
static void *refused(int error)
{
    CHECK(error == ENOMEM);
    CHECK(with_refusals || with_limits);
    atomic_fetch_add_explicit(&nulls, 1, memory_order_relaxed);
    return NULL;
}

static size_t a_size(uint64_t *state)
{
    uint64_t kind = next_random(state) % 1000, size = next_random(state);
    if (kind < 2)
        return size % (4 << 20) + LEAST;
    if (kind < 12)
        return size % 300000 + LEAST;
    if (kind < 100)
        return size % 30000 + LEAST;
    return size % 600 + LEAST;
}

/* A new, filled block, by any of the functions. NULL: there is no memory. */
static void *made(uint64_t *state, size_t size, uint64_t mark)
{
    void *block = NULL;
    int error = 0;
    size_t alignment = (size_t)16 << next_random(state) % (next_random(state) % 50 ? 5 : 14);
    errno = 0;
    switch (next_random(state) % 8) {
    case 0:
        block = calloc(1, size), error = errno;
        if (block)
            for (size_t at = 0; at + 8 <= size; at = next_word(at, size))
                if (*(uint64_t *)((char *)block + at) != 0)
                    is_wrong(block, block, size, size, at, *(uint64_t *)((char *)block + at), 0, "calloc");
        break;
    case 1:
        block = aligned_alloc(alignment, (size + alignment - 1) & -alignment), error = errno;
        CHECK(is_aligned(block, alignment));
        break;
    case 2:
        error = posix_memalign(&block, alignment, size);
        CHECK(error == 0 || !block);
        CHECK(is_aligned(block, alignment));
        break;
    case 3:
        block = realloc(NULL, size), error = errno;
        break;
    default:
        block = malloc(size), error = errno;
    }
    if (!block)
        return refused(error);
    CHECK(is_aligned(block, 16));
    fill(block, size, mark);
    return block;
}

/* ---- a thread's table of blocks ---- */

struct slot {
    void *block;
    size_t size;
    uint64_t seed;
};
struct table {
    uint64_t state, live;
    size_t slots;
    struct slot slot[SLOTS];
};
enum { MOST_LIVE = 48 << 20 };

static _Atomic(void *) post[POST];

static void drop(struct table *t, struct slot *slot)
{
    if (!slot->block)
        return;
    verify(slot->block, slot->size, slot->seed, "freed");
    t->live -= slot->size;
    release(slot->block);
    slot->block = NULL;
}

static void put(struct table *t, struct slot *slot, size_t size)
{
    uint64_t mark = next_random(&t->state);
    void *block = made(&t->state, size, mark);
    if (block) {
        *slot = (struct slot){ block, size, mark };
        t->live += size;
    }
}

static void resize(struct table *t, struct slot *slot, size_t size)
{
    verify(slot->block, slot->size, slot->seed, "to be resized");
    const void *home = slot->block;
    errno = 0;
    void *block = realloc(slot->block, size);
    int error = errno;
    if (!block) {
        refused(error);
        verify(slot->block, slot->size, slot->seed, "not resized");
        return;
    }
    verify_part(block, home, slot->size, slot->size < size ? slot->size : size, slot->seed, "resized");
    t->live += size - slot->size;
    *slot = (struct slot){ block, size, next_random(&t->state) };
    fill(block, size, slot->seed);
}

/* One random operation. */
static void step(struct table *t)
{
    struct slot *slot = &t->slot[next_random(&t->state) % t->slots];
    uint64_t what = next_random(&t->state) % 100;
    if (!slot->block) {
        if (t->live < MOST_LIVE)
            put(t, slot, a_size(&t->state));
    } else if (what < 50) {
        drop(t, slot);
    } else if (what < 70) {
        /* Some blocks grow a little, and some of them in many steps. */
        size_t size = what < 60 ? a_size(&t->state) : slot->size + slot->size / 2;
        if (t->live + size < MOST_LIVE && size < 12 << 20)
            resize(t, slot, size);
    } else if (what < 90) {
        /* Gives the block to another thread, and takes one from another thread. */
        verify(slot->block, slot->size, slot->seed, "given away");
        t->live -= slot->size;
        void *block = atomic_exchange(&post[next_random(&t->state) % POST], slot->block);
        slot->block = NULL;
        if (block) {
            verify_given(block);
            struct head *head = block;
            *slot = (struct slot){ block, head->size, head->seed };
            t->live += slot->size;
        }
    } else {
        verify(slot->block, slot->size, slot->seed, "looked at");
        CHECK(malloc_usable_size(slot->block) >= slot->size);
    }
}

static void drop_all(struct table *t)
{
    for (size_t i = 0; i < t->slots; i++)
        drop(t, &t->slot[i]);
}

/* All is allowed again: no request is refused. */
static void is_served_again(struct table *t)
{
    for (size_t i = 0; i < t->slots; i++) {
        drop(t, &t->slot[i]);
        size_t size = a_size(&t->state);
        void *block = malloc(size);
        CHECK(block != NULL);
        t->slot[i] = (struct slot){ block, size, next_random(&t->state) };
        t->live += size;
        fill(block, size, t->slot[i].seed);
    }
    drop_all(t);
}

/* ---- signals ---- */

enum { HELD = 24 };
static __thread struct slot held[HELD];
static __thread uint64_t handler_state;

static void handler(int number)
{
    (void)number;
    int error = errno;
    if (handlers_allocate) {
        for (int i = 0; i < 6; i++) {
            struct slot *slot = &held[next_random(&handler_state) % HELD];
            if (slot->block) {
                verify(slot->block, slot->size, slot->seed, "a handler's");
                release(slot->block);
                slot->block = NULL;
            }
            size_t size = next_random(&handler_state) % (i ? 1500 : 40000) + LEAST;
            /* A request under a lock may be refused. */
            void *block = malloc(size);
            if (block) {
                *slot = (struct slot){ block, size, next_random(&handler_state) };
                fill(block, size, slot->seed);
            }
        }
        void *block = atomic_exchange(&post[next_random(&handler_state) % POST], NULL);
        if (block) {
            verify_given(block);
            release(block);
        }
    }
    atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
    errno = error;
}

static timer_t begin_signals(uint64_t mine)
{
    handler_state = mixed(seed, mine) | 1;
    timer_t timer = 0;
    if (with_signals)
        timer = interrupt_me(150000L << mixed(seed, mine + 1) % 5);
    return timer;
}
static void end_signals(timer_t timer)
{
    if (with_signals)
        leave_me_alone(timer);
    for (size_t i = 0; i < HELD; i++)
        if (held[i].block) {
            verify(held[i].block, held[i].size, held[i].seed, "a handler's, at the end");
            release(held[i].block);
            held[i].block = NULL;
        }
}

/* ---- threads ---- */

struct work {
    pthread_t thread;
    struct count *count;
    uint64_t number;
};

/* Waits until all refusals and limits are over, then expects that requests are served. */
static atomic_int refusals_over, limits_over;
static void end_of(struct table *t, struct count *count)
{
    while (!atomic_load(&refusals_over) || !atomic_load(&limits_over)) {
        moves(count);
        nap_ms(5);
    }
    for (int i = 0; i < 3; i++)
        is_served_again(t), moves(count);
}

static void *works(void *argument)
{
    struct work *work = argument;
    static __thread struct table table;
    table = (struct table){ .state = mixed(seed, work->number) | 1, .slots = SLOTS };
    timer_t timer = begin_signals(work->number);
    while (!atomic_load(&stop)) {
        step(&table);
        moves(work->count);
    }
    end_of(&table, work->count);
    end_signals(timer);
    atomic_store(&work->count->used, 0);
    return NULL;
}

static void *in_a_child(void *argument)
{
    struct table *t = argument;
    for (int i = 0; i < 100; i++)
        step(t);
    drop_all(t);
    return NULL;
}

static void wait_for(pid_t pid, struct count *count, int counts);

/* The child has all blocks of the forking thread, and works as any process does. */
static void be_a_child(struct table *t, struct count *count, int depth)
{
    spared = 0;
    /* The child ends with the program. */
    raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
    refusal_state ^= (uint64_t)own_tid() * 0x9e3779b97f4a7c15u;
    uint64_t *state = &t->state;
    for (size_t i = 0; i < t->slots; i++) {
        if (t->slot[i].block)
            verify(t->slot[i].block, t->slot[i].size, t->slot[i].seed, "inherited");
        moves(count);
    }
    if (with_signals)
        CHECK(raise(SIGUSR1) == 0);
    for (int i = 0; i < 300; i++)
        step(t), moves(count);
    uint64_t what = next_random(state) % 8;
    if (what == 0) {
        static struct table other;
        other = (struct table){ .state = next_random(state), .slots = FEW };
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_a_child, &other) == 0)
            CHECK(pthread_join(thread, NULL) == 0);
        else
            CHECK(with_refusals || with_limits);
    } else if (what == 1 && depth == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            be_a_child(t, count, 1);
            _exit(0);
        }
        if (pid > 0)
            wait_for(pid, count, 0);
    } else if (what == 2) {
        malloc_trim(0);
    } else if (what == 3 && depth == 0 && !with_limits) {
        execl(own_path, own_path, "start", "100000000", "only", "200", NULL);
    }
    for (size_t i = 0; i < t->slots; i++)
        drop(t, &t->slot[i]), moves(count);
}

static void wait_for(pid_t pid, struct count *count, int counts)
{
    if (counts)
        atomic_store(&count->child, pid);
    int status;
    pid_t ended;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (counts)
        atomic_store(&count->child, 0);
    CHECK(ended == pid);
    if (status != 0) {
        say("chaos: the child %d ended with status %#x\n", pid, status);
        end_at_once(1);
    }
}

static void *forks_all_the_time(void *argument)
{
    struct work *work = argument;
    static __thread struct table table;
    table = (struct table){ .state = mixed(seed, work->number) | 1, .slots = SLOTS };
    timer_t timer = begin_signals(work->number);
    while (!atomic_load(&stop)) {
        for (uint64_t i = next_random(&table.state) % 200; i > 0; i--)
            step(&table), moves(work->count);
        pid_t pid = fork();
        if (pid == 0) {
            be_a_child(&table, work->count, 0);
            _exit(0);
        }
        CHECK(pid > 0 || errno == EAGAIN || errno == ENOMEM);
        if (pid > 0) {
            atomic_fetch_add(&forks, 1);
            wait_for(pid, work->count, 1);
        }
        moves(work->count);
    }
    end_of(&table, work->count);
    end_signals(timer);
    atomic_store(&work->count->used, 0);
    return NULL;
}

enum { KEYS = 6, BATCH = 6 };
static pthread_key_t keys[KEYS];

/* A value is a block that its key's destructor checks, resizes, and may set again. */
static void destroy(void *value)
{
    struct head *head = value;
    verify_given(value);
    uint64_t state = head->seed | 1;
    uint64_t rounds = head->seed >> 60;
    void *more = made(&state, next_random(&state) % 3000 + LEAST, next_random(&state));
    if (more) {
        verify_given(more);
        release(more);
    }
    release(value);
    if (rounds > 1) {
        void *next = malloc(200);
        if (next) {
            fill(next, 200, (rounds / 2) << 60 | state >> 8);
            int error = pthread_setspecific(keys[rounds % KEYS], next);
            CHECK(error == 0 || error == ENOMEM);
            if (error)
                free(next);
        } else
            refused(errno);
    }
}

struct short_work {
    struct count *count;
    uint64_t state;
};

static void *lives_shortly(void *argument)
{
    struct short_work *work = argument;
    static __thread struct table table;
    table = (struct table){ .state = work->state | 1, .slots = FEW };
    timer_t timer = begin_signals(work->state);
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t state = next_random(&table.state) | 1;
        void *value = made(&state, next_random(&state) % 2000 + LEAST, next_random(&state));
        if (value && pthread_setspecific(keys[i], value) != 0)
            release(value);
    }
    for (int i = 0; i < 400; i++)
        step(&table), moves(work->count);
    end_signals(timer);
    /* Half of the remaining blocks go to other threads, which free them long after this thread. */
    for (size_t i = 0; i < table.slots; i++) {
        struct slot *slot = &table.slot[i];
        if (i % 2 && slot->block) {
            void *other = atomic_exchange(&post[i % POST], slot->block);
            slot->block = NULL;
            if (other) {
                verify_given(other);
                release(other);
            }
        }
        drop(&table, slot);
    }
    return NULL;
}

static void *spawns(void *argument)
{
    struct work *work = argument;
    uint64_t state = mixed(seed, work->number) | 1;
    while (!atomic_load(&stop)) {
        pthread_t threads[BATCH];
        struct short_work works[BATCH];
        size_t count = next_random(&state) % BATCH + 1, have = 0;
        for (size_t i = 0; i < count; i++) {
            works[have] = (struct short_work){ work->count, next_random(&state) };
            int error = pthread_create(&threads[have], NULL, lives_shortly, &works[have]);
            CHECK(error == 0 || ((error == EAGAIN || error == ENOMEM) && (with_refusals || with_limits)));
            have += error == 0;
            moves(work->count);
        }
        for (size_t i = 0; i < have; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
            moves(work->count);
        }
        atomic_fetch_add(&short_threads, have);
        if (!have)
            nap_ms(1);
    }
    atomic_store(&work->count->used, 0);
    return NULL;
}

static void *loads(void *argument)
{
    struct work *work = argument;
    uint64_t state = mixed(seed, work->number) | 1;
    while (!atomic_load(&stop)) {
        moves(work->count);
        /* Without memory the C library's loader may end the process, so it is not tested there. */
        spared = 1;
        void *plugin = dlopen(plugin_path, next_random(&state) % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
        if (!plugin) {
            CHECK(with_limits || with_refusals);
            spared = 0;
            nap_ms(1);
            continue;
        }
        void *(*plugin_work)(uint64_t) = (void *(*)(uint64_t))dlsym(plugin, "plugin_work");
        CHECK(plugin_work != NULL);
        spared = 0;
        void *block = plugin_work(next_random(&state));
        moves(work->count);
        if (block)
            release(block);
        spared = 1;
        CHECK(dlclose(plugin) == 0);
        spared = 0;
        atomic_fetch_add(&opened, 1);
    }
    atomic_store(&work->count->used, 0);
    return NULL;
}

static long address_space(void)
{
    char text[64];
    contents("/proc/self/statm", text, sizeof text);
    return strtol(text, NULL, 10) * sysconf(_SC_PAGESIZE);
}

static void allow_all_memory(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void *keeps_books(void *argument)
{
    struct work *work = argument;
    static __thread struct table table;
    table = (struct table){ .state = mixed(seed, work->number) | 1, .slots = FEW };
    timer_t timer = begin_signals(work->number);
    FILE *nowhere;
    while (!(nowhere = fopen("/dev/null", "w"))) {
        CHECK(with_limits || with_refusals);
        moves(work->count);
        nap_ms(5);
    }
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 50; i++)
            step(&table);
        moves(work->count);
        switch (next_random(&table.state) % 12) {
        case 0:
            malloc_trim(next_random(&table.state) % 3 ? 0 : 1 << 20);
            break;
        case 1: {
            struct mallinfo2 info = mallinfo2();
            CHECK(info.uordblks < (size_t)1 << 40);
            break;
        }
        case 2: {
            int error = malloc_info(0, nowhere);
            CHECK(error == 0 || with_limits || with_refusals);
            break;
        }
        case 3:
            if (hw_raise_shared_caches && next_random(&table.state) % 50 == 0)
                hw_raise_shared_caches(2 + next_random(&table.state) % 6);
            break;
        case 4:
            /* The program's own threads need room for their stacks. */
            if (with_limits && atomic_load(&all_started)) {
                struct rlimit limit;
                CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
                /* The limit is set twice. The first call changes the process's use of address
                   space, and the second sets the limit by the new use. */
                for (int i = 0; i < 2; i++) {
                    limit.rlim_cur = (rlim_t)address_space() + next_random(&table.state) % (4 << 20);
                    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
                }
                atomic_fetch_add(&lowered, 1);
            }
            break;
        case 5:
        case 6:
            if (with_limits)
                allow_all_memory();
            break;
        default:
            nap_ms((long)(next_random(&table.state) % 8));
        }
    }
    if (with_limits)
        allow_all_memory();
    atomic_store(&limits_over, 1);
    end_of(&table, work->count);
    end_signals(timer);
    fclose(nowhere);
    atomic_store(&work->count->used, 0);
    return NULL;
}

/* Two threads read lines: getline resizes memory under the FILE's lock. One flushes all FILEs. */
static void *reads_and_flushes(void *argument)
{
    struct work *work = argument;
    while (!atomic_load(&stop)) {
        moves(work->count);
        if (work->number % 2) {
            fflush(NULL);
            nap_ms(1);
            continue;
        }
        FILE *file = fopen(scratch_path, "r");
        if (!file) {
            CHECK(with_limits || with_refusals);
            continue;
        }
        for (int i = 0; i < 20 && !atomic_load(&stop); i++) {
            char *line = NULL;
            size_t room = 0;
            rewind(file);
            ssize_t length = getline(&line, &room, file);
            CHECK(length == 50001 || (length < 0 && (with_limits || with_refusals)));
            if (length == 50001) {
                CHECK(line[0] == 'x' && line[49999] == 'x');
                atomic_fetch_add(&lines, 1);
            }
            free(line);
            clearerr(file);
            moves(work->count);
        }
        fclose(file);
    }
    atomic_store(&work->count->used, 0);
    return NULL;
}

/* ---- the start alone ---- */

/* Runs before the constructors, also before the library's. */
static void preinit(int argc, char **argv, char **environment)
{
    (void)environment;
    if (argc >= 4 && !strcmp(argv[1], "start")) {
        refuse_from = strtol(argv[2], NULL, 10);
        refuse_all_after = !strcmp(argv[3], "after");
    }
    if (argc == 7 && (!strcmp(argv[1], "in") || !strcmp(argv[1], "back")))
        prepare(argv);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = preinit;

static void start_alone(long count)
{
    static struct table table;
    table = (struct table){ .state = 88172645463325252u, .slots = FEW };
    with_refusals = 1;
    for (long i = 0; i < count; i++)
        step(&table);
    drop_all(&table);
}

/* ---- in surroundings ---- */

static uint64_t until;

static void go_on(void)
{
    static struct table table;
    table = (struct table){ .state = strange, .slots = is_in("group") ? FEW : SLOTS };
    while (now_ms() < until) {
        for (int i = 0; i < 64; i++)
            step(&table);
        if (is_in("group"))
            buffers(table.live);
    }
    /* A leak makes the library write. */
    if (is_in("no-files") || is_in("strangers"))
        memset(&table, 0, sizeof table);
    drop_all(&table);
}

static void on_a_stack(size_t size)
{
    static ucontext_t here, there;
    static char for_signals[64 << 10];
    stack_t signals = { .ss_sp = for_signals, .ss_size = sizeof for_signals };
    int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *stack = (char *)raw_call(SYS_mmap, 0, (long)size + 65536, access, flags, -1, 0);
    CHECK(raw_call(SYS_mprotect, (long)stack, 65536, PROT_NONE, 0, 0, 0) == 0);
    CHECK(sigaltstack(&signals, NULL) == 0 && getcontext(&there) == 0);
    there.uc_stack = (stack_t){ .ss_sp = stack + 65536, .ss_size = size };
    there.uc_link = &here;
    makecontext(&there, go_on, 0);
    CHECK(swapcontext(&here, &there) == 0);
}

static void in_surroundings(char **argv)
{
    int has_files = is_in("no-files") || is_in("strangers");
    CHECK(has_files || open_files() == open_at_first);
    alarm(20);
    seed = strtoul(argv[3], NULL, 10);
    long ms = strtol(argv[5], NULL, 10);
    if (seed % 2 == 0) {
        until = now_ms() + (uint64_t)ms / 2;
        go_on();
    }
    if (!is_back)
        enter(argv, seed % 2 == 1);
    for (int i = 0; is_in("closed") && i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/own-%d", folder, i);
        CHECK(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600) == i);
    }
    until = now_ms() + (uint64_t)ms;
    if (is_in("stack")) {
        on_a_stack(strtoul(argv[6], NULL, 10));
    } else {
        go_on();
    }
    if (!is_in("sandbox"))
        CHECK(has_files || open_files() == open_at_first + (is_back && is_in("closed") ? 3 : 0));
}

/* ---- all ---- */

int main(int argc, char **argv)
{
    watch();
    own_path = "/proc/self/exe";
    if (*surroundings) {
        in_surroundings(argv);
        return 0;
    }
    if (argc >= 4 && !strcmp(argv[1], "start")) {
        start_alone(argc > 4 ? atol(argv[4]) : 3000);
        /* A forked child that became this program prints nothing. */
        if (argc <= 4)
            printf("%ld calls\n", atomic_load(&calls_so_far));
        return 0;
    }
    CHECK(argc >= 5);
    double seconds = strtod(argv[1], NULL);
    seed = strtoul(argv[2], NULL, 10);
    plugin_path = argv[3];
    scratch_path = argv[4];
    with_refusals = seed % 4 & 1;
    with_limits = (seed % 4 & 2) != 0;
    int workers = 1, forkers = 1, spawner = 1, loader = 1, clerk = 1;
    uint64_t patience = 5000;
    struct {
        const char *word;
        int *what;
    } words[] = {
        { "-workers", &workers },     { "-forkers", &forkers },         { "-spawner", &spawner },
        { "-loader", &loader },       { "-clerk", &clerk },             { "-stdio", &with_stdio },
        { "-signals", &with_signals }, { "-refusals", &with_refusals }, { "-limits", &with_limits },
    };
    for (int i = 5; i < argc; i++) {
        int known = 0;
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
            if (!strcmp(argv[i], words[j].word))
                *words[j].what = 0, known = 1;
        if (!strcmp(argv[i], "handlers"))
            handlers_allocate = known = 1;
        if (!strncmp(argv[i], "patience=", 9))
            patience = strtoul(argv[i] + 9, NULL, 10), known = 1;
        CHECK(known);
    }
    refusal_seed = mixed(seed, 99);
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (size_t i = 0; i < KEYS; i++)
        CHECK(pthread_key_create(&keys[i], destroy) == 0);

    static struct work work[COUNTS];
    static void *(*does[COUNTS])(void *);
    static const char *names[COUNTS];
    size_t threads = 0;
#define ADD(wanted, what, name)                            \
    do {                                                   \
        if (wanted) {                                      \
            does[threads] = what, names[threads++] = name; \
        }                                                  \
    } while (0)
    for (int i = 0; i < WORKERS; i++)
        ADD(workers, works, "worker");
    for (int i = 0; i < FORKERS; i++)
        ADD(forkers, forks_all_the_time, "forker");
    ADD(spawner, spawns, "spawner");
    ADD(loader, loads, "loader");
    ADD(clerk, keeps_books, "clerk");
    /* The thread with the odd number flushes. */
    size_t first_of_stdio = threads;
    for (int i = 0; i < 3; i++)
        ADD(with_stdio, reads_and_flushes, i == 1 ? "flusher" : "reader");
    for (size_t i = 0; i < threads; i++) {
        work[i] = (struct work){ 0, counted(names[i]), i < first_of_stdio ? i + 1 : i - first_of_stdio };
        CHECK(pthread_create(&work[i].thread, NULL, does[i], &work[i]) == 0);
    }
    atomic_store(&all_started, 1);

    unsigned long seen[COUNTS] = { 0 };
    uint64_t since[COUNTS] = { 0 };
    uint64_t state = mixed(seed, 1234) | 1;
    uint64_t end = now_ms() + (uint64_t)(seconds * 1000), next = 0;
    while (now_ms() < end) {
        nap_ms(20);
        look(seen, since, patience);
        if (with_refusals && now_ms() >= next) {
            /* Refuses none; one call of a thousand; of fifty; of three; all. */
            static const unsigned rates[] = { 0, 65, 65, 1300, 1300, 22000, 65536 };
            atomic_store(&refusal_rate, rates[next_random(&state) % (sizeof rates / sizeof rates[0])]);
            next = now_ms() + 20 + next_random(&state) % 200;
        }
    }
    atomic_store(&stop, 1);
    atomic_store(&refusal_rate, 0);
    atomic_store(&refusals_over, 1);
    if (!clerk)
        atomic_store(&limits_over, 1);
    for (size_t i = 0; i < threads; i++) {
        while (atomic_load(&work[i].count->used)) {
            nap_ms(5);
            look(seen, since, patience);
        }
        CHECK(pthread_join(work[i].thread, NULL) == 0);
    }
    for (size_t i = 0; i < POST; i++) {
        void *block = atomic_exchange(&post[i], NULL);
        if (block) {
            verify_given(block);
            release(block);
        }
    }
    unsigned long steps = 0;
    for (int i = 0; i < COUNTS; i++)
        steps += atomic_load(&shared->counts[i].moves);
    printf("%lu steps, %lu forks, %lu signals, %lu short threads, %lu libraries, %lu lines, %lu limits, %lu refused requests\n",
           steps, forks, signals, short_threads, opened, lines, lowered, nulls);
    if (with_refusals) {
        printf("   refused calls:");
        for (int i = 0; i < REFUSABLE; i++)
            if (asked_calls[i])
                printf(" %s %lu of %lu", refusable_names[i], refused_calls[i], asked_calls[i]);
        printf("\n");
    }
    return 0;
}
