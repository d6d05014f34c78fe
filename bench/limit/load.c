/* A load for a memory limit: `load MB` fills MB of memory with blocks of 16 to 2000 bytes. Then it
 * replaces two million of them at random, with about the same memory live all the time. Prints the
 * seconds for the whole load. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST = 16, MOST = 2000, REPLACED = 2000000 };

static uint64_t state = 88172645463325252;
static uint64_t random_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 16;
}

struct block {
    char *at;
    size_t size;
};

static struct block made(size_t size)
{
    struct block block = {malloc(size), size};
    if (block.at == NULL) {
        fputs("load: there is no memory\n", stderr);
        exit(3);
    }
    memset(block.at, 1, size);
    return block;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    size_t target = (size_t)(count > 1 ? atol(words[1]) : 350) << 20;
    struct block *blocks = calloc(target / LEAST, sizeof *blocks);
    size_t live = 0, number = 0;
    double began = now();
    for (;;) {
        size_t size = LEAST + random_number() % (MOST - LEAST);
        if (live + size > target)
            break;
        blocks[number++] = made(size);
        live += size;
    }
    for (int i = 0; i < REPLACED; i++) {
        size_t at = random_number() % number;
        size_t size = LEAST + random_number() % (MOST - LEAST);
        live -= blocks[at].size;
        free(blocks[at].at);
        blocks[at] = made(live + size > target ? LEAST : size);
        live += blocks[at].size;
    }
    printf("%.3f\n", now() - began);
    return 0;
}
