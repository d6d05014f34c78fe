// The base of the loads in C, here and in bench/gc/loads and bench/bounds. It has an exit with a
// reason, random numbers with a fixed seed, a clock, the kernel's facts, and memory outside the
// allocator.
//
//   base.h      this
//   inside.h    the calls of the allocator, and the time spent in them
//   blocks.h    blocks with a stamp, so that one handed out twice is noticed
//   memory.h    the kernel's figures of memory
//   threads.h   threads on stacks of ours, so that stacks can be told from heap
//   result.h    a run's one line of output
//
// Each file includes the one above it. Our programs call malloc, calloc, realloc, memalign and
// free as any program does, so the preloaded allocator serves them. A program maps memory for
// itself (tables, stacks), touches it before the work begins, and counts it as its own.
//
// Exit status: 0; 2: wrong arguments, or the system refused a call; 3: a block had lost its
// contents.

#ifndef BASE_H
#define BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const char *program_name;

_Noreturn static inline void die(int status, const char *why) {
    fprintf(stderr, "%s: %s\n", program_name, why);
    exit(status);
}

static inline uint64_t next_random(uint64_t *state) {
    // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A separate stream for each number: the same work in any thread.
static inline uint64_t stream(uint64_t number) {
    uint64_t state = 0x6865617077726967u ^ number * 0xd1342543de82ef95u;
    next_random(&state);
    return state;
}

// A size from 16 bytes to `doublings` doublings above. Every doubling is equally likely, so most
// blocks are small and most bytes are in large ones.
static inline size_t mixed_size(uint64_t *state, unsigned doublings) {
    uint64_t r = next_random(state);
    size_t least = (size_t)16 << (r % doublings);
    return least + (r >> 32) % least;
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// A line `NAME:   123 kB` of a file, in bytes. It uses system calls alone, because stdio would
// allocate.
static inline size_t line_of(const char *path, const char *name) {
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        die(2, "cannot read /proc/self/smaps_rollup or status: needs Linux 4.14 or newer");
    size_t got = 1;
    ssize_t more;
    text[0] = '\n';
    while (got < sizeof text - 1 && (more = read(file, text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)more;
    close(file);
    text[got] = 0;
    for (char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at[-1] == '\n' && at[strlen(name)] == ':')
            return strtoul(at + strlen(name) + 1, NULL, 10) * 1024;
    die(2, "the kernel does not say how much is resident");
}

// Bytes in tables, outside the heap.
static size_t own_bytes;

// Memory outside the allocator, zeroed and touched.
static inline void *table(size_t bytes) {
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die(2, "cannot map a table");
    madvise(p, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += PAGE)
        ((volatile char *)p)[at] = 0;
    own_bytes += bytes;
    return p;
}

// A number of the command line.
static inline size_t number(const char *text, const char *what, size_t least, size_t most) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value < least || value > most) {
        fprintf(stderr, "%s: '%s' is no %s: needs a number from %zu to %zu\n", program_name, text, what, least, most);
        exit(2);
    }
    return value;
}

#endif
