/*
 * What the programs of the corpus share, in C and C++.
 *
 *   BUG(text)    the text in the bad program, nothing in its twin
 *   FIX(text)    the text in the twin, nothing in the bad program
 *   SIZE         the program's argument: how large its block is
 *   hide(p)      the same pointer; the compiler no longer knows where it is from
 *   POKE(p, c)   writes one byte, really
 *   PEEK(p)      reads one byte, really
 *   wipe()       overwrites what dead frames left on the stack
 */
#ifndef CORPUS_H
#define CORPUS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BAD
#define BUG(...) __VA_ARGS__
#define FIX(...)
#else
#define BUG(...)
#define FIX(...) __VA_ARGS__
#endif

#define NOINLINE __attribute__((noinline, noclone))
#define POKE(p, c) (*(volatile char *)(p) = (char)(c))
#define PEEK(p) ((void)*(volatile char *)(p))

/* Known to no compiler, so that it cannot see what is wrong. */
static size_t corpus_size = 24;
#define SIZE corpus_size

__attribute__((constructor)) static void corpus_begin(int argc, char **argv)
{
    if (argc > 1)
        corpus_size = strtoul(argv[1], NULL, 0);
}

#ifdef __cplusplus
template <class T> static inline T *hide(T *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}
#else
static inline void *hide(const volatile void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return (void *)p;
}
#endif

/* Some allocator traffic in this and other classes, gone when it returns. */
static inline void churn(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        char *p = (char *)hide(malloc((size_t)(i * 37 % 2000 + 1)));
        p[0] = 1;
        free(hide(p));
    }
}

/* What functions that have returned left on the stack is no pointer of the program's. */
__attribute__((unused)) static NOINLINE void wipe(void)
{
    volatile char frame[8192];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 0;
}

/* The library that was built from the same source with -DPLUGIN. */
static inline const char *corpus_plugin(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 4);
    if (n < 0)
        exit(2);
    strcpy(path + n, ".so");
    return path;
}

/* Ends the program, which is not as it should be. */
#define CHECK(what) \
    ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), exit(1)))
#endif
