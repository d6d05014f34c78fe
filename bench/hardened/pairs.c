/*
 * What malloc and free of a large block cost, one after the other: pairs [BYTES], 100000 if not said.
 *
 *   cc -O2 -fno-builtin -o pairs bench/hardened/pairs.c
 *   HEAPWRIGHT=mode=hardened LD_PRELOAD=target/release/libheapwright.so ./pairs
 *
 * prints ns a pair (median of rounds) where no page of the block is touched, one, and all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41, PAIRS = 500 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words)
{
    size_t size = count > 1 ? strtoul(words[1], NULL, 10) : 100000;
    static const char *const names[] = {"no page touched", "one page touched", "all pages touched"};
    for (int touched = 0; touched < 3; touched++) {
        double rounds[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            double start = now();
            for (int i = 0; i < PAIRS; i++) {
                char *volatile block = malloc(size);
                if (!block)
                    return 1;
                memset(block, 1, touched == 0 ? 0 : touched == 1 ? 1 : size);
                free(block);
            }
            rounds[round] = (now() - start) / PAIRS;
        }
        qsort(rounds, ROUNDS, sizeof *rounds, by_size);
        printf("%s: %.0f ns\n", names[touched], rounds[ROUNDS / 2]);
    }
    return 0;
}
