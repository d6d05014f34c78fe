/* The results of leak checks that the program itself requests. Each word names one behaviour. */
#include "check.h"
#include "heapwright.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static volatile int stop, ready;
void *volatile kept;

/* Overwrites what calls have left on the stack, and in unused registers. (A check in a signal
 * handler finds all registers as they were.) */
#if defined __has_attribute
#if __has_attribute(zero_call_used_regs)
__attribute__((zero_call_used_regs("all-gpr")))
#endif
#endif
__attribute__((noinline)) static void wipe(void)
{
    volatile char litter[4096];
    for (size_t i = 0; i < sizeof litter; i++)
        litter[i] = 0;
}

__attribute__((noinline)) static void lose(size_t size)
{
    char *volatile block = malloc(size);
    block[0] = 1;
    block = NULL;
}

static hw_leak_check checked(void)
{
    hw_leak_check found;
    wipe();
    CHECK(hw_check_leaks(&found, sizeof found) == sizeof found);
    return found;
}

/* Waits in a loop of its own, with the block's address in one register that calls keep. */
static void hold_in_register(void *block)
{
#if defined __x86_64__
    register void *mine __asm__("rbx") = block;
#else
    register void *mine __asm__("x20") = block;
#endif
    block = NULL;
    __asm__ volatile("" : "+r"(mine));
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (!stop)
        __asm__ volatile("" : "+r"(mine) : : "memory");
}

static void *holder(void *argument)
{
    (void)argument;
    hold_in_register(malloc(500));
    return NULL;
}

/* Calls the kernel: the C library does not let a program block the C library's own signals. */
static void *silent(void *argument)
{
    uint64_t all = ~0ull;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8) == 0);
    lose(700);
    return holder(argument);
}

static __thread void *volatile mine;

static void *ends(void *argument)
{
    (void)argument;
    char *volatile on_stack = malloc(600);
    on_stack[0] = 1;
    mine = malloc(601);
    return NULL;
}

static void *checks(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        hw_leak_check found;
        hw_check_leaks(&found, sizeof found);
        free(malloc(100));
    }
    return NULL;
}

static void *reads(void *argument)
{
    char byte;
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    CHECK(read(*(int *)argument, &byte, 1) == 1);
    return NULL;
}

static pthread_key_t late_key;

static void late(void *round)
{
    for (int i = 0; i < 20; i++)
        free(malloc(3000 + (size_t)i * 100));
    if ((uintptr_t)round < 4)
        pthread_setspecific(late_key, (char *)round + 1);
}

static void *sets_key(void *argument)
{
    (void)argument;
    CHECK(pthread_setspecific(late_key, (void *)1) == 0);
    return NULL;
}

static int children;
static void on_child(int signal)
{
    (void)signal;
    children++;
}

static void start(pthread_t *threads, int count, void *(*what)(void *), void *argument)
{
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, what, argument) == 0);
}

static void finish(pthread_t *threads, int count)
{
    stop = 1;
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **words)
{
    pthread_t threads[8];
    const char *word = count > 1 ? words[1] : "call";
    if (!strcmp(word, "call")) {
        lose(40), lose(50), lose(300000);
        kept = malloc(60);
        hw_leak_check found = checked();
        CHECK(found.definite.blocks == 3 && found.definite.bytes == 300090);
        CHECK(found.reachable.blocks >= 1);
        free(kept);
    } else if (!strcmp(word, "registers")) {
        start(threads, 8, holder, NULL);
        while (ready < 8)
            sched_yield();
        hw_leak_check found = checked();
        CHECK(found.definite.blocks == 0 && found.possible.blocks == 0);
        finish(threads, 8);
        CHECK(checked().definite.blocks == 8);
    } else if (!strcmp(word, "silent")) {
        start(threads, 1, silent, NULL);
        while (ready < 1)
            sched_yield();
        lose(30);
        double before = seconds();
        hw_leak_check found = checked();
        CHECK(seconds() - before < 5);
        CHECK(found.definite.blocks == 1 && found.definite.bytes == 30);
        CHECK(found.possible.blocks >= 2 && found.possible.bytes >= 1200);
        finish(threads, 1);
    } else if (!strcmp(word, "ended")) {
        start(threads, 4, ends, NULL);
        finish(threads, 4);
        CHECK(checked().definite.blocks == 8);
        /* New threads use these threads' stacks. The stacks that none uses are forgotten. */
        start(threads, 2, ends, NULL);
        finish(threads, 2);
        CHECK(checked().definite.blocks == 12);
    } else if (!strcmp(word, "unseen")) {
        signal(SIGCHLD, on_child);
        start(threads, 2, holder, NULL);
        for (int i = 0; i < 5; i++)
            checked();
        finish(threads, 2);
        CHECK(children == 0);
        CHECK(wait(NULL) == -1 && errno == ECHILD);
    } else if (!strcmp(word, "reading")) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        start(threads, 4, reads, &ends[0]);
        while (ready < 4)
            sched_yield();
        for (int i = 0; i < 5; i++)
            checked();
        CHECK(write(ends[1], "4444", 4) == 4);
        finish(threads, 4);
    } else if (!strcmp(word, "crowd")) {
        start(threads, 8, checks, NULL);
        for (int i = 0; i < 20; i++) {
            int child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                free(malloc(10));
                _exit(0);
            }
            CHECK(waitpid(child, NULL, 0) == child);
        }
        finish(threads, 8);
    } else if (!strcmp(word, "forbidden")) {
        char *block = aligned_alloc(4096, 1 << 16);
        kept = block;
        CHECK(mprotect(block + 4096, 8192, PROT_NONE) == 0);
        *(void **)(block + 16384) = malloc(77);
        hw_leak_check found = checked();
        CHECK(found.definite.blocks == 0);
        CHECK(mprotect(block + 4096, 8192, PROT_READ | PROT_WRITE) == 0);
    } else if (!strcmp(word, "sparse")) {
        char *block = malloc(16ull << 30);
        CHECK(block);
        kept = block;
        *(void **)(block + (5ull << 30)) = malloc(77);
        double before = seconds();
        CHECK(checked().definite.blocks == 0);
        CHECK(seconds() - before < 5);
    } else if (!strcmp(word, "shared")) {
        /* The only pointer is in shared memory. A copy of the process has no page table for it. */
        void **page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED);
        page[100] = malloc(77);
        start(threads, 1, holder, NULL);
        hw_leak_check found = checked();
        CHECK(found.definite.blocks == 0);
        finish(threads, 1);
    } else if (!strcmp(word, "hidden")) {
        void **page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED);
        page[100] = malloc(77);
        CHECK(mprotect(page, 1 << 16, PROT_NONE) == 0);
        CHECK(checked().definite.blocks == 0);
    } else if (!strcmp(word, "keys")) {
        /* Threads that have no place in the heap any more allocate in destructors. */
        pthread_key_t key;
        CHECK(pthread_key_create(&key, late) == 0);
        late_key = key;
        for (int i = 0; i < 300; i++) {
            start(threads, 4, sets_key, NULL);
            finish(threads, 4);
        }
    } else if (!strcmp(word, "signal")) {
        lose(40);
        wipe();
        raise(SIGUSR2);
        /* The process's copy may still be checking. */
        usleep(300000);
    } else if (!strcmp(word, "exit")) {
        char *volatile local = malloc(40);
        local[0] = 1;
    } else if (!strcmp(word, "child")) {
        lose(40);
        int child = fork();
        if (child == 0) {
            /* Long enough to be worth a check. */
            lose(80);
            usleep(200000);
            exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    } else {
        CHECK(!"a known word");
    }
    return 0;
}
