/*
 * The cost of the checks of libheapwright-hardened.so: the program's function (checked, under the
 * preload) and the C library's own, in turn, in one process.
 *
 *   copies        prints: function, place, ns of the C library's, ns more with the check
 *                 (medians of rounds)
 *
 * The places are one block, 1024 blocks, a block of 1 MiB, and the stack. The 1024 blocks have many
 * sizes and a random order, and all are in the cache. They measure the address map and mispredicted
 * branches.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, CALLS = 20000, PLACES = 1024 };

typedef void *copy_function(void *, const void *, size_t);
typedef void *fill_function(void *, int, size_t);
typedef char *text_function(char *, const char *);
typedef int print_function(char *, size_t, const char *, ...);

static char *places[PLACES];
static const char source[64] = "fifteen letters";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

enum kind { COPY, FILL, TEXT, PRINT };

__attribute__((noinline)) static double run(enum kind kind, void *volatile function)
{
    void *f = function;
    double start = now();
    switch (kind) {
    case COPY:
        for (int i = 0; i < CALLS; i++)
            ((copy_function *)f)(places[i % PLACES], source, 16);
        break;
    case FILL:
        for (int i = 0; i < CALLS; i++)
            ((fill_function *)f)(places[i % PLACES], 0, 16);
        break;
    case TEXT:
        for (int i = 0; i < CALLS; i++)
            ((text_function *)f)(places[i % PLACES], source);
        break;
    case PRINT:
        for (int i = 0; i < CALLS; i++)
            ((print_function *)f)(places[i % PLACES], 16, "%d", i);
        break;
    }
    return (now() - start) / CALLS;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(const char *name, const char *place, enum kind kind, void *libc)
{
    void *checked = dlsym(RTLD_DEFAULT, name), *plain = dlsym(libc, name);
    if (!checked || !plain)
        exit(2);
    static double plains[ROUNDS], mores[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        /* The order alternates. */
        double a = run(kind, round % 2 ? checked : plain);
        double b = run(kind, round % 2 ? plain : checked);
        plains[round] = round % 2 ? b : a;
        mores[round] = round % 2 ? a - b : b - a;
    }
    qsort(plains, ROUNDS, sizeof(double), by_size);
    qsort(mores, ROUNDS, sizeof(double), by_size);
    printf("%s %s %.2f %.2f\n", name, place, plains[ROUNDS / 2], mores[ROUNDS / 2]);
}

int main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    if (!libc)
        return 2;
    char stack[64];
    uint32_t random = 1;
    for (int place = 0; place < 4; place++) {
        static const char *const names[] = {"block", "blocks", "large", "stack"};
        char *block = malloc(place == 2 ? 1 << 20 : 64);
        for (int i = 0; i < PLACES; i++) {
            random = random * 1664525 + 1013904223;
            places[i] = place == 1 ? malloc(16 + (random >> 20) % 400) : place == 3 ? stack : block;
        }
        for (int i = PLACES - 1; i > 0; i--) {
            random = random * 1664525 + 1013904223;
            int other = (int)((random >> 8) % (uint32_t)(i + 1));
            char *kept = places[i];
            places[i] = places[other];
            places[other] = kept;
        }
        compare("memcpy", names[place], COPY, libc);
        compare("memset", names[place], FILL, libc);
        compare("strcpy", names[place], TEXT, libc);
        compare("snprintf", names[place], PRINT, libc);
    }
    return 0;
}
