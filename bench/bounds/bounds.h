// What the memory bounds' programs share: resident memory as the kernel counts
// it, random sizes, blocks that are really in memory, and the line that a
// figure is.
//
// A program touches its own tables (static, or mapped by itself) before it
// takes the baseline, so what is resident above the baseline is the heap's,
// but for the stacks of threads. Live bytes are those the program asked for.
//
// A figure is one line, fields separated by tabs, for ci/bounds.sh:
//
//     figure   measured   at most   unit
//
// The unit is "x" for a ratio. Other lines are for people.

#ifndef BOUNDS_H
#define BOUNDS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#define KIB (1024.0)
#define MIB (1024.0 * 1024.0)

static inline void die(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(2);
}

static inline void *must(void *p) {
    if (p == NULL)
        die("out of memory");
    return p;
}

// Resident bytes of this process, exactly: the kernel walks the page tables.
// The counters in /proc/self/statm lag behind by up to some MiB a processor.
// Reads with system calls alone, for stdio would allocate.
static inline size_t resident(void) {
    char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    if (file < 0)
        die("cannot open /proc/self/smaps_rollup: this needs Linux 4.14 or newer");
    ssize_t got = 0, more;
    while ((more = read(file, text + got, sizeof text - 1 - (size_t)got)) > 0)
        got += more;
    close(file);
    text[got] = 0;
    char *at = strstr(text, "\nRss:");
    if (at == NULL)
        die("/proc/self/smaps_rollup has no line Rss");
    return strtoul(at + 5, NULL, 10) * 1024;
}

static inline uint64_t next_random(uint64_t *state) {
    // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A size from 16 bytes to `doublings` doublings above: every doubling is as
// likely as the others, so most blocks are small and most bytes are in large ones.
static inline size_t mixed_size(uint64_t *state, unsigned doublings) {
    uint64_t r = next_random(state);
    size_t least = (size_t)16 << (r % doublings);
    return least + (r >> 32) % least;
}

// A block whose every page is in memory.
static inline char *block(size_t size) {
    char *p = must(malloc(size));
    for (size_t at = 0; at < size; at += 4096)
        p[at] = 1;
    p[size - 1] = 1;
    return p;
}

// Memory that the allocator under test does not see, all of it touched.
static inline void *table(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("cannot map a table");
    return memset(p, 1, bytes);
}

static inline void shuffle(void **items, size_t count, uint64_t *state) {
    for (size_t i = count; i > 1; i--) {
        size_t j = next_random(state) % i;
        void *other = items[j];
        items[j] = items[i - 1];
        items[i - 1] = other;
    }
}

static inline pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        die("cannot start a thread");
    return thread;
}

static inline void sleep_ms(long ms) {
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static inline double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void figure(const char *name, const char *what, double measured, double at_most, const char *unit) {
    printf("%s%s\t%.2f\t%.2f\t%s\n", name, what, measured, at_most, unit);
}

#endif
