/*
 * System calls that the kernel refuses at random.
 *
 * The library makes its system calls through the C library's thin wrappers, which the dynamic
 * linker binds. The program's own definitions come first there. So the definitions below stand
 * between the shipped library and the kernel. The C library's own calls (stacks of threads, the
 * loader's mappings, its own malloc) do not come here. So only the calls of heapwright's module
 * `os` are refused.
 *
 *   mmap munmap mprotect mremap     ENOMEM: too many mappings, or no memory (mremap: before or after
 *                                   the destination was unmapped)
 *   madvise                         ENOMEM, or EAGAIN
 *   mincore                         EAGAIN
 *   membarrier                      EPERM: a sandbox
 *   open, read, pread64             EMFILE, EIO
 *   prctl                           EINVAL: an old kernel
 *
 * A futex and a mask of signals are never refused: the kernel refuses no valid call of these.
 */
#ifndef REFUSALS_H
#define REFUSALS_H

#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* One system call, with no code between. A negative result is an error's number. */
static inline long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "no such machine"
#endif
}

static inline long answer(long result)
{
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

enum refusable {
    R_MMAP,
    R_MUNMAP,
    R_MPROTECT,
    R_MADVISE,
    R_MREMAP,
    R_MINCORE,
    R_MEMBARRIER,
    R_OPEN,
    R_READ,
    R_PRCTL,
    REFUSABLE
};
static const char *const refusable_names[REFUSABLE] = { "mmap",    "munmap",  "mprotect",   "madvise", "mremap",
                                                        "mincore", "membarrier", "open", "read",    "prctl" };

/* The number of calls of 65,536 that are refused now. */
static atomic_uint refusal_rate;
static uint64_t refusal_seed;
static atomic_ulong refused_calls[REFUSABLE], asked_calls[REFUSABLE];
/* Set for code that cannot cope with a refusal, such as the C library's loader. */
static __thread int spared;
static __thread uint64_t refusal_state;

/* The number of the refused call since the start, and whether all calls after it are refused. */
static long refuse_from = -1;
static int refuse_all_after;
static atomic_long calls_so_far;

static int refuses(enum refusable call)
{
    atomic_fetch_add_explicit(&asked_calls[call], 1, memory_order_relaxed);
    int refused = 0;
    if (refuse_from >= 0) {
        long number = atomic_fetch_add(&calls_so_far, 1);
        refused = number == refuse_from || (refuse_all_after && number > refuse_from);
    }
    unsigned rate = atomic_load_explicit(&refusal_rate, memory_order_relaxed);
    if (rate != 0 && !spared) {
        if (refusal_state == 0)
            refusal_state = refusal_seed ^ ((uint64_t)(uintptr_t)&refusal_state * 0x9e3779b97f4a7c15u) ^ 1;
        refused |= next_random(&refusal_state) % 65536 < rate;
    }
    if (refused)
        atomic_fetch_add_explicit(&refused_calls[call], 1, memory_order_relaxed);
    return refused;
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset)
{
    if (refuses(R_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)answer(raw_call(SYS_mmap, (long)at, (long)size, access, flags, file, offset));
}

int munmap(void *at, size_t size)
{
    if (refuses(R_MUNMAP)) {
        errno = ENOMEM;
        return -1;
    }
    return (int)answer(raw_call(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0));
}

int mprotect(void *at, size_t size, int access)
{
    if (refuses(R_MPROTECT)) {
        errno = ENOMEM;
        return -1;
    }
    return (int)answer(raw_call(SYS_mprotect, (long)at, (long)size, access, 0, 0, 0));
}

int madvise(void *at, size_t size, int advice)
{
    if (refuses(R_MADVISE)) {
        errno = size % 8192 ? ENOMEM : EAGAIN;
        return -1;
    }
    return (int)answer(raw_call(SYS_madvise, (long)at, (long)size, advice, 0, 0, 0));
}

void *mremap(void *at, size_t old, size_t size, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (refuses(R_MREMAP)) {
        /* The kernel may have unmapped the destination before it finds that it cannot move. */
        if (to && next_random(&refusal_state) % 2)
            raw_call(SYS_munmap, (long)to, (long)size, 0, 0, 0, 0);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)answer(raw_call(SYS_mremap, (long)at, (long)old, (long)size, flags, (long)to, 0));
}

int mincore(void *at, size_t size, unsigned char *pages)
{
    if (refuses(R_MINCORE)) {
        errno = EAGAIN;
        return -1;
    }
    return (int)answer(raw_call(SYS_mincore, (long)at, (long)size, (long)pages, 0, 0, 0));
}

int prctl(int option, ...)
{
    va_list rest;
    va_start(rest, option);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long), d = va_arg(rest, long);
    va_end(rest);
    if (refuses(R_PRCTL)) {
        errno = EINVAL;
        return -1;
    }
    return (int)answer(raw_call(SYS_prctl, option, a, b, c, d, 0));
}

ssize_t pread64(int file, void *bytes, size_t size, off64_t offset)
{
    if (refuses(R_READ)) {
        errno = EIO;
        return -1;
    }
    return answer(raw_call(SYS_pread64, file, (long)bytes, (long)size, offset, 0, 0));
}

/* Makes the calls that the library makes by their numbers. */
static long (*instead)(long, long, long, long, long, long, long) = raw_call;

long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    static const struct {
        long number;
        enum refusable call;
        int error;
    } calls[] = {
        { SYS_membarrier, R_MEMBARRIER, EPERM },
        { SYS_openat, R_OPEN, EMFILE },
        { SYS_read, R_READ, EIO },
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (number == calls[i].number && refuses(calls[i].call)) {
            errno = calls[i].error;
            return -1;
        }
    return answer(instead(number, a, b, c, d, e, f));
}

#endif
