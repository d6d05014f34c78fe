/* The program of Zig's PR #17383, in C: the cost of one survivor in each bucket.
 *
 *   rounds ROUNDS [keep]
 *
 * A round makes 32 blocks of 128 bytes and frees 31 of them. The first stays, and pins the memory
 * in which the allocator keeps 32 slots. After ROUNDS rounds the survivors are freed, in the order
 * they were made. With `keep` they stay, so that statistics taken at exit show the pinned memory.
 *
 * Each malloc and each free is called through 16 functions, so that an allocator
 * that keeps stacks finds 16 frames above main. Like those of optimised
 * programs, they have no frame pointers. Built with
 *
 *   -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -fno-builtin
 *
 * Prints the nanoseconds of the rounds and of the last frees. Blocks are not
 * written to, as in the PR. The list of survivors is mapped, not allocated.
 * rounds.zig is the same in Zig. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 32, BLOCK = 128 };

#define FRAME __attribute__((noipa))

/* noipa: neither inlined nor cloned nor merged with a function that looks alike. */
FRAME static void *make_1(void) { return malloc(BLOCK); }
FRAME static void drop_1(void *block) { free(block); }
#define THROUGH(n, below)                                      \
    FRAME static void *make_##n(void) { return make_##below(); } \
    FRAME static void drop_##n(void *block) { drop_##below(block); }
THROUGH(2, 1)
THROUGH(3, 2)
THROUGH(4, 3)
THROUGH(5, 4)
THROUGH(6, 5)
THROUGH(7, 6)
THROUGH(8, 7)
THROUGH(9, 8)
THROUGH(10, 9)
THROUGH(11, 10)
THROUGH(12, 11)
THROUGH(13, 12)
THROUGH(14, 13)
THROUGH(15, 14)
THROUGH(16, 15)

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

FRAME static void go_round(void **survivors, size_t rounds) {
    void *slots[SLOTS];
    for (size_t round = 0; round < rounds; round++) {
        for (int i = 0; i < SLOTS; i++)
            if (!(slots[i] = make_16())) abort();
        survivors[round] = slots[0];
        for (int i = 1; i < SLOTS; i++) drop_16(slots[i]);
    }
}

FRAME static void free_survivors(void **survivors, size_t rounds) {
    for (size_t round = 0; round < rounds; round++) drop_16(survivors[round]);
}

struct spent {
    uint64_t rounds, frees;
};

/* Callgrind counts the instructions of this function, by its name. */
FRAME static struct spent measured(void **survivors, size_t rounds, int keep) {
    uint64_t start = now();
    go_round(survivors, rounds);
    uint64_t between = now();
    if (!keep) free_survivors(survivors, rounds);
    return (struct spent){between - start, now() - between};
}

int main(int argc, char **argv) {
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (rounds == 0 || argc > 3 || (argc == 3 && strcmp(argv[2], "keep") != 0)) {
        fputs("usage: rounds ROUNDS [keep]\n", stderr);
        return 2;
    }
    void **survivors = mmap(NULL, rounds * sizeof *survivors, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (survivors == MAP_FAILED) return 2;
    struct spent spent = measured(survivors, rounds, argc == 3);
    char text[160];
    int length = snprintf(text, sizeof text, "figure rounds_ns %llu\nfigure frees_ns %llu\nfigure rounds %zu\n%s\n",
                          (unsigned long long)spent.rounds, (unsigned long long)spent.frees, rounds,
                          argc == 3 ? "all kept" : "all freed");
    return write(1, text, (size_t)length) == length ? 0 : 1;
}
