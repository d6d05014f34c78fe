/*
 * Prints blocks, a line each. Uninitialised bytes are at the stars of the second word.
 */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(const unsigned char *block, size_t from, size_t size, size_t defined)
{
    for (size_t i = from; i < size; i++)
        printf("%02x", block[i]);
    putchar(' ');
    for (size_t i = from; i < size; i++)
        fputs(i < defined ? "--" : "**", stdout);
    putchar('\n');
}

static void *grown(size_t from, size_t to)
{
    char *block = malloc(from);
    memset(block, 'x', from);
    return realloc(block, to);
}

int main(void)
{
    unsigned char *blocks[2];
    for (int i = 0; i < 2; i++) {
        blocks[i] = malloc(43);
        print(blocks[i], 0, 43, 0);
    }
    free(blocks[0]);
    free(blocks[1]);
    unsigned char *zeros = calloc(1, 20);
    print(zeros, 0, 20, 20);
    free(zeros);
    /* Copied blocks; blocks with pages of their own; such blocks, moved or in place. */
    const size_t sizes[][2] = {{13, 50}, {100000, 400000}, {600000, 1300000}, {1300000, 1400000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t from = sizes[i][0], to = sizes[i][1];
        unsigned char *block = grown(from, to);
        print(block, from - 11, from + 20, from);
        print(block, to - 20, to, from);
        block = realloc(block, 5);
        print(block, 0, 5, 5);
        free(block);
    }
    unsigned char *aligned = aligned_alloc(64, 64);
    print(aligned, 0, 64, 0);
    free(aligned);
    return 0;
}
