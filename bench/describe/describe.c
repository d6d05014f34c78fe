// describe: the nanoseconds of one hw_describe on a warm address, for each kind of address. The
// time must not depend on the contents there, and the call must never fault, so inaccessible
// addresses are queried, too. Each answer is checked: a fast wrong answer does not count.
//
// A figure is the least of 9 rounds of a million calls through the library's exported symbol:
// disturbed rounds are only longer. The exit status is 1 if a figure is above the limit (argument
// 1, default 30).

#include "heapwright.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 9, CALLS = 1000000, MANY = 512 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double limit;
static int above;

static void measure(const char *what, const void *const *addresses, int count, int kind, long offset) {
    double least = 1e9;
    for (int i = 0; i < count; i++) {
        hw_description d = hw_describe(addresses[i]);
        if ((int)d.kind != kind || (offset >= 0 && (long)d.offset != offset)) {
            fprintf(stderr, "describe: wrong answer for %s: kind %d, offset %zu\n", what, (int)d.kind, d.offset);
            exit(1);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        size_t sum = 0;
        double start = now_ns();
        for (int i = 0, at = 0; i < CALLS; i++) {
            sum += hw_describe(addresses[at]).offset;
            if (++at == count)
                at = 0;
        }
        double each = (now_ns() - start) / CALLS;
        __asm__ volatile("" : : "r"(sum));
        if (each < least)
            least = each;
    }
    printf("| %s | %.1f |\n", what, least);
    if (least > limit)
        above = 1;
}

int main(int argc, char **argv) {
    limit = argc > 1 ? atof(argv[1]) : 30;
    printf("| address | ns a call |\n|---|--:|\n");
    static char data[64];
    const void *list[MANY];

    void *block = malloc(100);
    measure("a small block, its start", (const void *const[]){block}, 1, HW_KIND_SMALL, 0);
    measure("a small block, 57 bytes in", (const void *const[]){(char *)block + 57}, 1, HW_KIND_SMALL, 57);

    // Sizes whose division is not a shift, and many slabs.
    void *blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = malloc(16 + (size_t)i * 24 % 3000);
        list[i] = (char *)blocks[i] + 7;
    }
    measure("512 small blocks of all sizes, 7 bytes in", list, MANY, HW_KIND_SMALL, 7);

    char *large = malloc(5 << 20);
    measure("a large block, its start", (const void *const[]){large}, 1, HW_KIND_LARGE, 0);
    measure("a large block, 3 MiB in", (const void *const[]){large + (3 << 20)}, 1, HW_KIND_LARGE, 3 << 20);

    int local = 0;
    measure("the stack", (const void *const[]){&local}, 1, HW_KIND_FOREIGN, 0);
    measure("a program's data", (const void *const[]){data}, 1, HW_KIND_FOREIGN, 0);
    measure("a program's code", (const void *const[]){(void *)(size_t)&main}, 1, HW_KIND_FOREIGN, 0);
    char *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4096);
    measure("an unmapped page", (const void *const[]){gone}, 1, HW_KIND_FOREIGN, 0);
    measure("a null pointer", (const void *const[]){NULL}, 1, HW_KIND_FOREIGN, 0);
    measure("no address at all (all bits set)", (const void *const[]){(void *)~(size_t)0}, 1, HW_KIND_FOREIGN, 0);

    for (int i = 0; i < MANY; i++)
        free(blocks[i]);
    free(large);
    free(block);
    if (above)
        fprintf(stderr, "describe: above the limit of %.0f ns\n", limit);
    return above;
}
