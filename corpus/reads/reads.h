/*
 * What the programs here share, in C and C++: each is a function, and the program's argument says which one runs.
 *
 *   PROGRAM(name) { ... }   the program of that name
 *   SINK(value)             uses what was read
 */
#ifndef READS_H
#define READS_H
#include "../corpus.h"

static const char *asked = "";
static void (*run)(void);

#define PROGRAM(name) \
    static void name(void); \
    __attribute__((constructor)) static void name##_is_listed(int count, char **words) \
    { \
        if (count > 1 && strcmp(asked = words[1], #name) == 0) \
            run = name; \
    } \
    static void name(void)

#define SINK(value) (sink += (long)(value))
static volatile long sink;

/* A block with letters in all of its bytes, and no zero. */
static NOINLINE char *letters(size_t bytes)
{
    char *block = (char *)malloc(bytes);
    memset(hide(block), 'a', bytes);
    return (char *)hide(block);
}

static NOINLINE int *numbers(size_t count)
{
    int *block = (int *)malloc(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        block[i] = (int)i + 1;
    return (int *)hide(block);
}

int main(void)
{
    if (!run) {
        fprintf(stderr, "there is no program \"%s\"\n", asked);
        return 1;
    }
    run();
    return 0;
}
#endif
