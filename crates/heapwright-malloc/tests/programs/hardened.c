/*
 * One misuse, or correct use, of the hardened heap. The first word names it.
 */
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

/* Hides a block's use from the compiler. */
static void *hide(void *block)
{
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

static int is(const char *word, const char *wanted)
{
    return strcmp(word, wanted) == 0;
}

static void misuse(const char *what, size_t size)
{
    char *block = hide(malloc(size));
    CHECK(block != NULL && malloc_usable_size(block) == size);
    memset(block, 1, size);
    if (is(what, "overflow")) {
        block[size] = 2;
        block[size + 1] = 2;
        free(block);
    } else if (is(what, "overflow-realloc")) {
        /* (One of 256 canaries has the same byte. These are four.) */
        memset(block + size + 1, 2, 4);
        free(realloc(block, size + 1));
    } else if (is(what, "double")) {
        free(block);
        free(hide(block));
    } else if (is(what, "interior")) {
        free(hide(block + 8));
    } else if (is(what, "freed-realloc")) {
        free(block);
        free(realloc(hide(block), size + 1));
    } else if (is(what, "after-free")) {
        free(block);
        block[0] = 2;
        /* Allocates until the block comes again. */
        static void *many[100000];
        size_t count = size > 4096 ? 4000 : 100000;
        for (size_t i = 0; i < count; i++)
            many[i] = malloc(size);
        for (size_t i = 0; i < count; i++)
            free(many[i]);
    } else {
        CHECK(!"a misuse");
    }
}

static void exact_sizes(void)
{
    for (size_t size = 1; size < 200000; size += 1 + size / 7) {
        unsigned char *block = malloc(size);
        CHECK(block != NULL && malloc_usable_size(block) == size);
        for (size_t i = 0; i < size; i++)
            CHECK(block[i] == 0);
        memset(block, 0xa5, size);
        for (size_t more = 1; more < 3 * size; more += 1 + size / 3) {
            size_t before = malloc_usable_size(block);
            unsigned char *moved = realloc(block, more);
            CHECK(moved != NULL && malloc_usable_size(moved) == more);
            for (size_t i = 0; i < before && i < more; i++)
                CHECK(moved[i] == 0xa5);
            block = moved;
            memset(block, 0xa5, more);
        }
        free(block);
    }
}

static void in_place(void)
{
    char *small = malloc(100);
    char *same = small;
    for (size_t size = 100; size > 90; size--) {
        small = realloc(small, size);
        CHECK(small == same);
    }
    free(small);
    char *large = malloc(1000000);
    memset(large, 1, 1000000);
    same = large;
    for (size_t size = 1000000; size > 950000; size -= 7777) {
        large = realloc(large, size);
        CHECK(large == same && malloc_usable_size(large) == size && large[size - 1] == 1);
    }
    large = realloc(large, 1000000);
    CHECK(large == same && large[900000] == 1);
    memset(large, 2, 1000000);
    free(large);
}

/* Two large blocks grow in turns, so that each must move with all its contents. Then they shrink to
 * less than half. */
static void moves(void)
{
    enum { BLOCKS = 2, LAST = 48 << 20 };
    unsigned *block[BLOCKS] = { 0 };
    size_t words[BLOCKS] = { 0 };
    for (size_t size = 700000; size < LAST; size += size / 2 + 1234) {
        for (unsigned which = 0; which < BLOCKS; which++) {
            block[which] = realloc(block[which], size);
            CHECK(block[which] != NULL && malloc_usable_size(block[which]) == size);
            for (size_t i = 0; i < words[which]; i++)
                CHECK(block[which][i] == i * 7 + which);
            for (size_t i = words[which]; i < size / sizeof(unsigned); i++)
                block[which][i] = i * 7 + which;
            words[which] = size / sizeof(unsigned);
        }
    }
    for (unsigned which = 0; which < BLOCKS; which++) {
        block[which] = realloc(block[which], LAST / 8);
        CHECK(block[which] != NULL);
        for (size_t i = 0; i < LAST / 8 / sizeof(unsigned); i++)
            CHECK(block[which][i] == i * 7 + which);
        free(block[which]);
    }
}

/* Bytes that are resident. */
static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all, pages;
    CHECK(file != NULL && fscanf(file, "%zu %zu", &all, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* The memory of freed blocks goes back while a program continues, however slowly. */
static void goes_back(void)
{
    enum { COUNT = 100000, SIZE = 1000 };
    static void *many[COUNT];
    size_t before = resident();
    for (int i = 0; i < COUNT; i++)
        memset(many[i] = malloc(SIZE), 1, SIZE);
    CHECK(resident() > before + COUNT * SIZE);
    for (int i = 0; i < COUNT; i++)
        free(many[i]);
    while (resident() > before + COUNT * SIZE / 4) {
        usleep(1000);
        void *few[100];
        for (int i = 0; i < 100; i++)
            few[i] = malloc(48);
        for (int i = 0; i < 100; i++)
            free(few[i]);
    }
}

static void no_bytes(void)
{
    static char *blocks[5000];
    for (int i = 0; i < 5000; i++) {
        blocks[i] = malloc(0);
        CHECK(blocks[i] != NULL && malloc_usable_size(blocks[i]) == 0);
        CHECK(i == 0 || blocks[i] != blocks[i - 1]);
    }
    blocks[0] = realloc(blocks[0], 40);
    CHECK(blocks[0] != NULL);
    memset(blocks[0], 1, 40);
    for (int i = 0; i < 5000; i++)
        free(blocks[i]);
}

/* An hw_block. */
struct seen {
    void *address;
    size_t size;
    unsigned owner;
    bool in_use;
};

struct sought {
    void *address;
    struct seen found;
};

static bool look(const struct seen *seen, void *context)
{
    struct sought *sought = context;
    if (seen->address == sought->address)
        sought->found = *seen;
    return true;
}

/* A walk says how many bytes were asked for, and which blocks are free. Freed large blocks wait
 * before they are handed out again. */
static void is_walked(void)
{
    bool (*walk)(bool (*)(const struct seen *, void *), void *) =
        dlsym(RTLD_DEFAULT, "hw_heap_walk");
    CHECK(walk != NULL);
    for (size_t size = 100; size < 10000000; size = size * 5 + 1) {
        struct sought sought = {.address = malloc(size)};
        CHECK(walk(look, &sought) && sought.found.in_use && sought.found.size == size);
        free(sought.address);
        sought.found.in_use = false;
        CHECK(walk(look, &sought) && !sought.found.in_use);
    }
}

/* A block longer than all waiting blocks may wait. It must neither be lost nor push others out. */
static void huge(void)
{
    for (int i = 0; i < 5000; i++) {
        char *block = malloc((size_t)300 << 20);
        CHECK(block != NULL);
        block[0] = 1;
        free(block);
        block = malloc(200000);
        CHECK(block != NULL && block[0] == 0);
        block[0] = 1;
        free(block);
    }
}

/* Large blocks that come again and again. All pages of a block are touched, or one page, or every
 * other page. Each block reads as zero, and cannot be accessed once it is freed. */
static void *large_again(void *may_fork)
{
    static const size_t sizes[] = { 100000, 100000, 103000, 300000, 70000, 1000000 };
    for (int round = 0; round < 600; round++) {
        size_t size = sizes[round / 100 % 6] + (round % 7 == 6 ? 4096 : 0);
        unsigned char *block = hide(malloc(size));
        CHECK(block != NULL && malloc_usable_size(block) == size);
        for (size_t i = 0; i < size; i++)
            CHECK(block[i] == 0);
        size_t step = round / 50 % 3 == 0 ? 1 : round / 50 % 3 == 1 ? 8192 : size;
        for (size_t i = 0; i < size; i += step)
            block[i] = 0x5a;
        if (round % 11 == 10) {
            size_t other = size - size / 3;
            block = hide(realloc(block, other));
            CHECK(block != NULL && block[0] == 0x5a && malloc_usable_size(block) == other);
            block = hide(realloc(block, size));
            CHECK(block != NULL && block[0] == 0x5a);
            for (size_t i = other; i < size; i++)
                CHECK(block[i] == 0);
        }
        free(block);
        if (may_fork == NULL || round % 60 != 59)
            continue;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            volatile unsigned char *freed = hide(block);
            _exit(freed[round % 2 ? 0 : size / 2]);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    return NULL;
}

static void large_blocks_again(void)
{
    large_again("may fork");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, large_again, NULL) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *consume(void *blocks)
{
    void **all = blocks;
    for (int i = 0; i < 40; i++)
        free(all[i]);
    for (int i = 0; i < 40; i++) {
        all[i] = malloc(48);
        CHECK(all[i] != NULL);
        memset(all[i], 7, 48);
        for (int j = 0; j < i; j++)
            CHECK(all[i] != all[j]);
    }
    return NULL;
}

static void consumers(void)
{
    for (int round = 0; round < 200; round++) {
        void *all[40];
        for (int i = 0; i < 40; i++)
            CHECK((all[i] = malloc(48)) != NULL);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, consume, all) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        for (int i = 0; i < 40; i++)
            free(all[i]);
    }
}

/* The number of children, and of the places that each process reports. */
enum { CHILDREN = 8, FIRST = 200 };

/* Writes the places of this process's next blocks; then those of a child. */
static void write_places(int to, size_t size, int is_child)
{
    static uintptr_t places[FIRST];
    for (int i = 0; i < FIRST; i++)
        places[i] = (uintptr_t)malloc(size);
    CHECK(write(to, places, sizeof places) == sizeof places);
    if (is_child)
        return;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        write_places(to, size, 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Children, their children and the parent draw blocks in orders of their own. (By chance all eight
 * agree on a place where one slot is free, and hardly ever elsewhere.) */
static void forks_with(size_t size)
{
    static void *warm[3000];
    static uintptr_t seen[2 * CHILDREN][FIRST];
    for (int i = 0; i < 3000; i++)
        CHECK((warm[i] = malloc(size)) != NULL);
    for (int i = 0; i < 3000; i += 2)
        free(warm[i]);
    for (int child = 0; child < CHILDREN; child++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            write_places(ends[1], size, 0);
            _exit(0);
        }
        for (int which = 0; which < 2; which++)
            CHECK(read(ends[0], seen[2 * child + which], sizeof seen[0]) == sizeof seen[0]);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        close(ends[0]);
        close(ends[1]);
    }
    int agree = 0;
    for (int i = 0; i < FIRST; i++) {
        int with_first = 0, grandchildren = 0;
        for (int child = 0; child < CHILDREN; child++) {
            with_first += seen[2 * child][i] == seen[0][i];
            grandchildren += seen[2 * child + 1][i] == seen[1][i];
        }
        agree += (with_first == CHILDREN) + (grandchildren == CHILDREN);
    }
    CHECK(agree < 5);
    for (int i = 1; i < 3000; i += 2)
        free(warm[i]);
}

static void *nothing(void *argument)
{
    return argument;
}

static void forks(void)
{
    for (int threads = 0; threads < 2; threads++) {
        for (size_t size = 16; size < 4000; size = size * 5 / 2)
            forks_with(size);
        forks_with(40000);
        /* The same in a process that has had another thread. */
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* Returns the least number of calls of malloc, over some rounds, after which a freed block comes
 * again. `frees`: each block is freed at once. 0: it does not come. */
static size_t comes_again(size_t size, int frees)
{
    enum { CALLS = 20000, BEFORE = 50 };
    void **held = calloc(CALLS, sizeof *held);
    CHECK(held != NULL);
    size_t least = 0;
    for (int round = 0; round < (frees ? 20 : 3); round++) {
        for (int i = 0; i < BEFORE; i++)
            held[i] = malloc(size);
        for (int i = 0; i < BEFORE; i++)
            free(held[i]);
        char *volatile freed = malloc(size);
        free(freed);
        size_t calls = 0, count = 0;
        while (calls < CALLS) {
            char *block = malloc(size);
            calls++;
            if (block == freed && (!least || calls < least))
                least = calls;
            if (!frees)
                held[count++] = block;
            else
                free(block);
            if (block == freed)
                break;
        }
        for (size_t i = 0; i < count; i++)
            free(held[i]);
    }
    free(held);
    return least;
}

static size_t size_of_all, least_calls;

static void *waits_in_thread(void *argument)
{
    CHECK(comes_again(size_of_all, 0) == 0);
    size_t least = comes_again(size_of_all, 1);
    CHECK(least == 0 || least >= least_calls);
    return argument;
}

/* Frees the block as its thread's last action. */
static void *frees(void *block)
{
    free(malloc(size_of_all));
    free(block);
    return NULL;
}

/* The block of an ended thread does not come again while no block is freed. */
static void *waits_on(void *freed)
{
    enum { CALLS = 20000 };
    void **held = calloc(CALLS, sizeof *held);
    CHECK(held != NULL);
    for (int i = 0; i < CALLS; i++) {
        held[i] = malloc(size_of_all);
        CHECK(held[i] != freed);
    }
    for (int i = 0; i < CALLS; i++)
        free(held[i]);
    free(held);
    return NULL;
}

static void after_each_other(void *(*first)(void *), void *(*second)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, first, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, second, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A freed block does not come again if no other block is freed, and comes late if others are. That
 * holds in a young thread, in threads that run at once, and in a thread that follows another. */
static void waits(size_t size, size_t least)
{
    size_of_all = size;
    least_calls = least;
    waits_in_thread(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, waits_in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    after_each_other(frees, waits_on, malloc(size));
}

static void ends(int signal)
{
    _exit(signal == SIGALRM ? 0 : 1);
}

/* A handler ends the process while it interrupts malloc or free, anywhere. The block that the call
 * works on is no finding. */
static void ends_in_handlers(void)
{
    for (int child = 0; child < 60; child++) {
        size_t size = (size_t[]){ 24, 500, 1000, 30000 }[child % 4];
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            struct itimerval soon = { { 0, 0 }, { 0, 500 + 37 * child } };
            CHECK(signal(SIGALRM, ends) != SIG_ERR && setitimer(ITIMER_REAL, &soon, NULL) == 0);
            for (;;) {
                char *volatile block = malloc(size);
                memset(block, 7, size);
                free(block);
            }
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    static const struct { const char *name; void (*run)(void); } right[] = {
        { "sizes", exact_sizes }, { "in-place", in_place }, { "no-bytes", no_bytes }, { "walk", is_walked },
        { "moves", moves }, { "goes-back", goes_back }, { "large-again", large_blocks_again },
        { "huge", huge }, { "consumers", consumers }, { "forks", forks },
        { "handlers", ends_in_handlers },
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        if (is(argv[1], right[i].name)) {
            right[i].run();
            return 0;
        }
    if (is(argv[1], "waits")) {
        CHECK(argc == 4);
        waits(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
        return 0;
    }
    misuse(argv[1], strtoul(argv[2], NULL, 10));
    puts("went on");
    return 0;
}
