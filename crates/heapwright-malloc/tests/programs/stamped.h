/*
 * Blocks with a stamp at both ends. Only a block's holder may change it. give_back notices a block
 * that two threads hold, or that was written to after its free.
 *
 *   | seal: address ^ number | size .............. | last byte: low byte of the seal |
 *
 * Nothing here allocates or prints, so that signal handlers can use it.
 */
#ifndef STAMPED_H
#define STAMPED_H

#include "check.h"

enum { STAMPED_LEAST = 17 };

struct stamp {
    uint64_t seal;
    uint64_t size;
};

static inline uint64_t stamp_seal(const void *block, uint64_t number)
{
    return (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u ^ number;
}

/* Marks a block of `size` bytes, at least STAMPED_LEAST, as that of `number`. */
__attribute__((unused)) static void stamp_block(void *block, size_t size, uint64_t number)
{
    struct stamp *stamp = block;
    stamp->seal = stamp_seal(block, number);
    stamp->size = size;
    ((unsigned char *)block)[size - 1] = (unsigned char)stamp->seal;
}

/* Whether the block still has the stamp of `number`. */
__attribute__((unused)) static int is_stamped(const void *block, uint64_t number)
{
    const struct stamp *stamp = block;
    return stamp->seal == stamp_seal(block, number) && stamp->size >= STAMPED_LEAST &&
           stamp->size < (uint64_t)1 << 32 &&
           ((const unsigned char *)block)[stamp->size - 1] == (unsigned char)stamp->seal;
}

/* A new block of that number. Without memory, ends the program. */
__attribute__((unused)) static void *stamped(size_t size, uint64_t number)
{
    if (size < STAMPED_LEAST)
        size = STAMPED_LEAST;
    void *block = malloc(size);
    CHECK(block != NULL);
    CHECK(is_aligned(block, 16));
    stamp_block(block, size, number);
    return block;
}

/* Frees a block of that number. Ends the program if its stamp has changed. */
__attribute__((unused)) static void give_back(void *block, uint64_t number)
{
    CHECK(is_stamped(block, number));
    /* A later look at the block must not find the stamp. */
    *(volatile uint64_t *)block = 0;
    free(block);
}

/* Whether all sizes are those of large blocks of up to 5 units of 64 KiB. */
__attribute__((unused)) static int only_runs;

/* Mostly small sizes, some of many kilobytes, and now and then a large size. */
__attribute__((unused)) static size_t some_size(uint64_t *state)
{
    uint64_t random = next_random(state);
    uint64_t size = next_random(state);
    if (only_runs)
        return size % 290000 + 32769;
    if (random % 200 == 0)
        return size % 200000 + STAMPED_LEAST;
    if (random % 10 == 0)
        return size % 20000 + STAMPED_LEAST;
    return size % 500 + STAMPED_LEAST;
}

#endif
