/*
 * The common part of the test programs: a check that prints its place when it fails.
 *
 * A failed check writes one line with write(2) (stdio allocates, and the allocator is under test)
 * and ends the program at once.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Present if the program runs on heapwright. */
const char *hw_version(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

__attribute__((noreturn, unused)) static void check_failed(const char *file, int line,
                                                            const char *what)
{
    char message[512];
    int length = snprintf(message, sizeof message, "%s:%d: not so: %s (errno %d)\n", file, line,
                          what, errno);
    if (write(2, message, (size_t)length) < 0)
        _exit(3);
    _exit(1);
}

#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition))                                           \
            check_failed(__FILE__, __LINE__, #condition);           \
    } while (0)

/* Hides from the compiler what a pointer points to, and that it is unused. */
#define OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

/* A byte for a position in a block: neighbours differ, and so do blocks. */
__attribute__((unused)) static inline unsigned char pattern(size_t seed, size_t at)
{
    return (unsigned char)(seed * 131 + at * 7 + (at >> 8) * 13 + 1);
}

__attribute__((unused)) static void paint(void *block, size_t size, size_t seed)
{
    unsigned char *bytes = (unsigned char *)block;
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(seed, i);
}

__attribute__((unused)) static int is_painted(const void *block, size_t size, size_t seed)
{
    const unsigned char *bytes = (const unsigned char *)block;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern(seed, i))
            return 0;
    return 1;
}

__attribute__((unused)) static int is_zero(const void *block, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)block;
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return 0;
    return 1;
}

__attribute__((unused)) static int is_aligned(const void *block, size_t alignment)
{
    return ((uintptr_t)block & (alignment - 1)) == 0;
}

/* xorshift: the same numbers in every run. */
__attribute__((unused)) static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* Resident kilobytes of the process, without those that an emulator needs (EMULATOR_KIB). */
__attribute__((unused)) static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL);
    long size, resident;
    CHECK(fscanf(f, "%ld %ld", &size, &resident) == 2);
    fclose(f);
    const char *emulator = getenv("EMULATOR_KIB");
    return resident * (sysconf(_SC_PAGESIZE) / 1024) - (emulator != NULL ? atol(emulator) : 0);
}

/*
 * Whether a program of this C library calls a function by that name. musl has none of glibc's own
 * functions, whatever the libraries with bounds export. Its headers call the functions for large
 * files by their plain names.
 */
__attribute__((unused)) static inline int is_in_c_library(const char *name)
{
#ifdef __GLIBC__
    return name != NULL;
#else
    return strncmp(name, "__", 2) != 0 && strstr(name, "64") == NULL && strcmp(name, "wmempcpy") != 0 &&
           strcmp(name, "rawmemchr") != 0;
#endif
}

#endif
