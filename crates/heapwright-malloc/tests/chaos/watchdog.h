/*
 * A watchdog that needs no debugger: who works counts, and where a count stands still for too
 * long, the stacks of all threads, and of the child that is waited for, are written.
 *
 * ```
 *   counts     a line for each thread that works, in memory shared with forked children
 *   sample     the thread that is asked by SIGUSR2 writes where it is, and waits until it was looked at
 *   a thread that blocks signals: where it is stands in /proc/PID/task/TID/syscall
 * ```
 *
 * A stack is what on it, from its pointer up, is an address of code behind a call instruction. That
 * shows frames that are over, too; but it reads no tables, takes no lock of the loader's, and
 * does not fault (/proc/PID/mem). Nothing here allocates or uses a FILE. Frames are written as
 * `    PATH+0xOFFSET`; ci/chaos.sh puts names to them.
 */
#ifndef WATCHDOG_H
#define WATCHDOG_H

#include "refusals.h"
#include <dirent.h>
#include <signal.h>
#include <sched.h>
#include <time.h>
#include <ucontext.h>

enum { COUNTS = 32 };

struct count {
    atomic_ulong moves;
    /* The child that is waited for, if any. */
    atomic_int child;
    atomic_int used;
    char name[24];
};

static struct shared {
    struct count counts[COUNTS];
    atomic_int asked, told, crashed;
    uintptr_t pc, sp;
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

/* Not `_exit`, which the library looks at. */
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

static void context_of(void *context, uintptr_t *pc, uintptr_t *sp)
{
    ucontext_t *c = context;
#if defined(__x86_64__)
    *pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    *sp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
#else
    *pc = (uintptr_t)c->uc_mcontext.pc;
    *sp = (uintptr_t)c->uc_mcontext.sp;
#endif
}

static void is_asked(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int me = own_tid();
    if (!shared || atomic_load(&shared->asked) != me)
        return;
    context_of(context, &shared->pc, &shared->sp);
    atomic_store(&shared->told, me);
    while (atomic_load(&shared->asked) == me)
        nap_ms(1);
}

/* A file of /proc, cut where it is longer. */
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

struct code {
    uintptr_t start, end, base;
    const char *path;
};
static char maps[1 << 20];
static struct code codes[1024];
static size_t code_count;

static void read_maps(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    contents(path, maps, sizeof maps);
    code_count = 0;
    uintptr_t base = 0;
    const char *file = "";
    for (char *line = maps; *line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        else
            next = line + strlen(line);
        char *rest;
        uintptr_t start = strtoul(line, &rest, 16);
        uintptr_t end = strtoul(rest + 1, &rest, 16);
        char *name = strpbrk(line, "/[");
        if (name) {
            if (strcmp(name, file) != 0)
                file = name, base = start;
            if (rest[3] == 'x' && code_count < sizeof codes / sizeof codes[0])
                codes[code_count++] = (struct code){ start, end, base, name };
        }
        line = next;
    }
}

static const struct code *code_at(uintptr_t address)
{
    for (size_t i = 0; i < code_count; i++)
        if (address >= codes[i].start && address < codes[i].end)
            return &codes[i];
    return NULL;
}

static int memory_of(int pid, uintptr_t at, void *bytes, size_t size, size_t *got)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    long file = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return 0;
    long n = raw_call(SYS_pread64, file, (long)bytes, (long)size, (long)at, 0, 0);
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    *got = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Whether what is before an address is an instruction that calls. */
static int is_behind_a_call(int pid, uintptr_t address)
{
    unsigned char b[7];
    size_t got;
    if (!memory_of(pid, address - sizeof b, b, sizeof b, &got) || got != sizeof b)
        return 0;
#if defined(__x86_64__)
    return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0x38) == 0x10) ||
           (b[3] == 0xff && (b[4] & 0x38) == 0x10) || (b[1] == 0xff && (b[2] & 0x38) == 0x10) ||
           (b[0] == 0xff && (b[1] & 0x38) == 0x10);
#else
    uint32_t word;
    memcpy(&word, b + 3, 4);
    return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000;
#endif
}

static void show_frame(uintptr_t address)
{
    const struct code *code = code_at(address);
    if (code)
        say("    %s+0x%lx\n", code->path, (unsigned long)(address - code->base));
    else
        say("    ?+0x%lx\n", (unsigned long)address);
}

static void show_stack(int pid, uintptr_t pc, uintptr_t sp)
{
    enum { WORDS = 2048, FRAMES = 48 };
    static uintptr_t words[WORDS];
    show_frame(pc);
    size_t got = 0;
    if (!memory_of(pid, sp, words, sizeof words, &got))
        return;
    int frames = 0;
    for (size_t i = 0; i < got / sizeof words[0] && frames < FRAMES; i++)
        if (code_at(words[i]) && is_behind_a_call(pid, words[i])) {
            /* The call, not what follows it. */
            show_frame(words[i] - 1);
            frames++;
        }
}

static void show_thread(int pid, int tid)
{
    char path[64], text[4096], wait[128];
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", pid, tid);
    contents(path, wait, sizeof wait);
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
    contents(path, text, sizeof text);
    char *state = strstr(text, "State:"), *blocked = strstr(text, "SigBlk:");
    say("  thread %d of %d: %.14s, waits in %s, %.24s\n", tid, pid, state ? state : "gone", wait,
        blocked ? blocked : "");
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, tid);
    contents(path, text, sizeof text);
    uintptr_t pc = 0, sp = 0;
    atomic_store(&shared->told, 0);
    atomic_store(&shared->asked, tid);
    raw_call(SYS_tgkill, pid, tid, SIGUSR2, 0, 0, 0);
    for (int i = 0; i < 300 && atomic_load(&shared->told) != tid; i++)
        nap_ms(1);
    if (atomic_load(&shared->told) == tid) {
        pc = shared->pc, sp = shared->sp;
    } else {
        /* NUMBER ARGUMENTS... SP PC */
        say("  (it does not answer) %s", text);
        char *last = strrchr(text, ' ');
        if (last) {
            pc = strtoul(last, NULL, 16);
            *last = 0;
            last = strrchr(text, ' ');
            sp = last ? strtoul(last, NULL, 16) : 0;
        }
    }
    if (pc)
        show_stack(pid, pc, sp);
    atomic_store(&shared->asked, 0);
}

static void show_process(int pid)
{
    read_maps(pid);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    long folder = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    static char entries[16384];
    long got;
    while (folder >= 0 && (got = raw_call(SYS_getdents64, folder, (long)entries, sizeof entries, 0, 0, 0)) > 0)
        for (long at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            int tid = atoi(entry->d_name);
            if (tid > 0 && tid != own_tid())
                show_thread(pid, tid);
        }
    if (folder >= 0)
        raw_call(SYS_close, folder, 0, 0, 0, 0, 0);
}

/* All that there is to see, for who reads it later. */
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

/* A signal that ends the program says first where it came. */
static void is_crashing(int number, siginfo_t *info, void *context)
{
    if (atomic_exchange(&shared->crashed, 1)) {
        /* Another thread, or process, says what there is to say. */
        nap_ms(5000);
        end_at_once(1);
    }
    uintptr_t pc, sp;
    context_of(context, &pc, &sp);
    if (number == SIGSYS) {
        /* In a sandbox there is no looking around. */
        say("chaos: the system call %d is forbidden\n", info->si_syscall);
        end_at_once(1);
    }
    int pid = (int)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    say("chaos: signal %d, address %p, in thread %d of %d\n", number, info->si_addr, own_tid(), pid);
    read_maps(pid);
    show_stack(pid, pc, sp);
    show_all();
    end_at_once(1);
}

static void watch(void)
{
    shared = (void *)raw_call(SYS_mmap, 0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK((long)shared > 0);
    struct sigaction action = { .sa_sigaction = is_asked, .sa_flags = SA_RESTART | SA_SIGINFO };
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    action.sa_sigaction = is_crashing;
    action.sa_flags |= SA_ONSTACK;
    int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        CHECK(sigaction(numbers[i], &action, NULL) == 0);
}

/* A count for the calling thread. */
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

/* Looks once; ends the program where a count stood still for so long. */
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
