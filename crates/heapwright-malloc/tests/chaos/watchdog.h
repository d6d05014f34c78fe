/*
 * A watchdog. Each thread counts its work. If a count stands still for too long, or a signal ends
 * the program, a debugger writes the stacks of all threads. It also writes the stacks of the
 * children that threads wait for.
 *
 * ```
 *   counts     a line for each thread, in memory shared with forked children
 *   debugger   gdb, started by bare system calls, without the library's functions
 * ```
 *
 * Nothing here allocates or uses a FILE.
 */
#ifndef WATCHDOG_H
#define WATCHDOG_H

#include "refusals.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum { COUNTS = 32 };

struct count {
    atomic_ulong moves;
    /* The child that the thread waits for, if any. */
    atomic_int child;
    atomic_int used;
    char name[24];
};

static struct shared {
    struct count counts[COUNTS];
    atomic_int crashed;
} *shared;

static int say_to = 2;
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[1024];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(line, sizeof line, format, rest);
    va_end(rest);
    if (length > (int)sizeof line - 1)
        length = sizeof line - 1;
    if (length > 0)
        raw_call(SYS_write, say_to, (long)line, length, 0, 0, 0);
}

/* Not `_exit`, which the library interposes. */
__attribute__((noreturn)) static void end_at_once(int status)
{
    for (;;)
        raw_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static int own_tid(void) { return (int)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static void nap_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    raw_call(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Reads a file of /proc, cut to the room. */
static size_t contents(const char *path, char *bytes, size_t room)
{
    long file = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    size_t have = 0;
    while (file >= 0 && have + 1 < room) {
        long got = raw_call(SYS_read, file, (long)bytes + (long)have, (long)(room - have - 1), 0, 0, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    if (file >= 0)
        raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    bytes[have] = 0;
    return have;
}

/* Shows the stacks of all threads of a process, by a debugger in another process. */
static void show_process(int pid)
{
    char number[16];
    snprintf(number, sizeof number, "%d", pid);
    char *words[] = { "gdb", "-nx", "-batch", "-p", number, "-ex", "thread apply all bt 40", NULL };
    char *variables[] = { "PATH=/usr/bin:/bin", NULL };
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    long child = raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0) {
        raw_call(SYS_prlimit64, 0, RLIMIT_AS, (long)&all, 0, 0, 0);
        raw_call(SYS_dup3, say_to, 1, 0, 0, 0, 0);
        raw_call(SYS_execve, (long)"/usr/bin/gdb", (long)words, (long)variables, 0, 0, 0);
        end_at_once(1);
    }
    if (child > 0)
        raw_call(SYS_wait4, child, 0, 0, 0, 0, 0);
}

/* Shows all facts for a later reader. */
static void show_all(void)
{
    for (int i = 0; i < COUNTS; i++) {
        struct count *count = &shared->counts[i];
        if (!atomic_load(&count->used))
            continue;
        say("  %s: %lu moves\n", count->name, atomic_load(&count->moves));
    }
    int pid = (int)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    show_process(pid);
    for (int i = 0; i < COUNTS; i++) {
        int child = atomic_load(&shared->counts[i].child);
        if (child > 0) {
            say("  the child %d of %s\n", child, shared->counts[i].name);
            show_process(child);
        }
    }
}

/* Prints where a signal came that ends the program. */
static void is_crashing(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (atomic_exchange(&shared->crashed, 1)) {
        /* Another thread, or process, prints the facts. */
        nap_ms(5000);
        end_at_once(1);
    }
    if (number == SIGSYS) {
        /* A sandbox allows no debugger. */
        say("chaos: the system call %d is forbidden\n", info->si_syscall);
        end_at_once(1);
    }
    int pid = (int)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    say("chaos: signal %d, address %p, in thread %d of %d\n", number, info->si_addr, own_tid(), pid);
    show_all();
    end_at_once(1);
}

static void watch(void)
{
    shared = (void *)raw_call(SYS_mmap, 0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK((long)shared > 0);
    struct sigaction action = { .sa_sigaction = is_crashing, .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK };
    raw_call(SYS_prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0, 0);
    int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        CHECK(sigaction(numbers[i], &action, NULL) == 0);
}

/* Returns a count for the calling thread. */
static struct count *counted(const char *name)
{
    for (int i = 0; i < COUNTS; i++) {
        struct count *count = &shared->counts[i];
        if (!atomic_load(&count->used)) {
            snprintf(count->name, sizeof count->name, "%s", name);
            atomic_store(&count->used, 1);
            return count;
        }
    }
    return NULL;
}

static inline void moves(struct count *count) { atomic_fetch_add_explicit(&count->moves, 1, memory_order_relaxed); }

/* Looks at all counts once. Ends the program if a count stood still for `patience`. */
static void look(unsigned long *seen, uint64_t *since, uint64_t patience)
{
    uint64_t now = now_ms();
    for (int i = 0; i < COUNTS; i++) {
        struct count *count = &shared->counts[i];
        unsigned long is = atomic_load(&count->moves);
        if (!atomic_load(&count->used) || is != seen[i] || since[i] == 0) {
            seen[i] = is;
            since[i] = now;
        } else if (now - since[i] > patience) {
            say("chaos: %s has not moved for %lu ms\n", count->name, (unsigned long)(now - since[i]));
            show_all();
            end_at_once(1);
        }
    }
}

#endif
