// giveback WHO SIZE TOTAL_MIB HOW
//
// Allocates TOTAL_MIB in blocks of SIZE, and frees nine in ten at random. The remaining memory may
// be at most 1.1 times the pages with a live block, plus 16 MiB. This program counts these pages by
// the blocks' addresses.
//
//   WHO   one     one thread does it all
//         four    four threads, each with its part; they live on
//         other   one thread allocates, and lives on, idle; another frees
//
//   HOW   little  the threads that freed go on allocating a little: every 2 ms
//                 each replaces four of 256 blocks of 16 bytes to 4 KiB, for 1.5 s
//         pair    a still more quiet program: the same block of 100 bytes, one
//                 malloc and one free every 2 ms, for 1.5 s
//         trim    one of them calls malloc_trim(0), all others are idle
//
// The main thread only measures.

#include "bounds.h"
#include <malloc.h>

enum { THREADS = 4, SMALL = 256 };

static char **blocks;
static size_t count, size;
static const char *how;
static pthread_barrier_t stage;

struct part {
    size_t from, to;
    int allocates, frees, trims;
};

// All threads meet, the main thread measures, and they meet again.
static void end_of_stage(void) {
    pthread_barrier_wait(&stage);
    pthread_barrier_wait(&stage);
}

static size_t look(void) {
    pthread_barrier_wait(&stage);
    size_t bytes = resident();
    pthread_barrier_wait(&stage);
    return bytes;
}

static void go_on_a_little(void) {
    char *small[SMALL] = { 0 };
    uint64_t random = 5;
    for (double end = now_ms() + 1500; now_ms() < end; sleep_ms(2)) {
        for (int i = 0; i < 4; i++) {
            char **place = &small[next_random(&random) % SMALL];
            free(*place);
            *place = block(mixed_size(&random, 8));
        }
    }
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
}

static void go_on_with_a_pair(void) {
    for (double end = now_ms() + 1500; now_ms() < end; sleep_ms(2)) {
        char *volatile p = block(100);
        free(p);
    }
}

static void *work(void *argument) {
    struct part *part = argument;
    uint64_t random = part->from + 1;
    if (part->allocates)
        for (size_t i = part->from; i < part->to; i++)
            blocks[i] = block(size);
    end_of_stage();
    if (part->frees) {
        shuffle((void **)blocks + part->from, part->to - part->from, &random);
        for (size_t i = part->from; i < part->to - (part->to - part->from) / 10; i++) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    end_of_stage();
    if (part->frees && strcmp(how, "little") == 0)
        go_on_a_little();
    if (part->frees && strcmp(how, "pair") == 0)
        go_on_with_a_pair();
    if (part->trims)
        malloc_trim(0);
    end_of_stage();
    return NULL;
}

// Pages with a live block: a bitmap for each GiB of addresses, made when needed.
enum { GIB_BITS = 30, BITMAPS = 4096 };
static uint64_t *gibs[1 << (47 - GIB_BITS)];
static uint64_t bitmaps[BITMAPS][1 << (GIB_BITS - 12 - 6)];
static size_t bitmaps_used;

static size_t pages_of(const char *block) {
    size_t fresh = 0;
    for (uintptr_t page = (uintptr_t)block >> 12; page <= ((uintptr_t)block + size - 1) >> 12; page++) {
        uint64_t **gib = &gibs[page >> (GIB_BITS - 12)];
        if (*gib == NULL) {
            if (bitmaps_used == BITMAPS)
                die(2, "giveback: the blocks lie further apart than this program can count");
            *gib = bitmaps[bitmaps_used++];
        }
        size_t bit = page & ((1 << (GIB_BITS - 12)) - 1);
        fresh += !((*gib)[bit / 64] >> (bit % 64) & 1);
        (*gib)[bit / 64] |= (uint64_t)1 << (bit % 64);
    }
    return fresh;
}

int main(int argc, char **argv) {
    program_name = "giveback";
    if (argc != 5)
        die(2, "usage: giveback one|four|other SIZE TOTAL_MIB little|pair|trim");
    const char *who = argv[1];
    size = strtoul(argv[2], NULL, 10);
    how = argv[4];
    if (sysconf(_SC_PAGESIZE) != 4096)
        die(2, "giveback counts pages of 4 KiB; this machine has others");
    if (size == 0)
        die(2, "giveback: the size must not be 0");
    count = (strtoul(argv[3], NULL, 10) << 20) / size;
    blocks = table(count * sizeof *blocks);
    int trims = strcmp(how, "trim") == 0;
    struct part parts[THREADS];
    unsigned threads = 1;
    if (strcmp(who, "four") == 0) {
        threads = 4;
        for (unsigned t = 0; t < threads; t++)
            parts[t] = (struct part){ count * t / 4, count * (t + 1) / 4, 1, 1, trims && t == 0 };
    } else if (strcmp(who, "other") == 0) {
        threads = 2;
        parts[0] = (struct part){ 0, count, 1, 0, 0 };
        parts[1] = (struct part){ 0, count, 0, 1, trims };
    } else {
        parts[0] = (struct part){ 0, count, 1, 1, trims };
    }
    pthread_barrier_init(&stage, NULL, threads + 1);
    size_t empty = resident();
    pthread_t running[THREADS];
    for (unsigned t = 0; t < threads; t++)
        running[t] = start(work, &parts[t]);
    size_t full = look();
    size_t after_frees = look();
    pthread_barrier_wait(&stage);
    size_t after = resident();
    size_t pages = 0;
    for (size_t i = 0; i < count; i++)
        if (blocks[i] != NULL)
            pages += pages_of(blocks[i]);
    pthread_barrier_wait(&stage);
    for (unsigned t = 0; t < threads; t++)
        pthread_join(running[t], NULL);

    double bytes = (double)pages * 4096;
    const char *unit = size < 1024 ? "B" : size < 1 << 20 ? "KiB" : "MiB";
    size_t number = size < 1024 ? size : size < 1 << 20 ? size >> 10 : size >> 20;
    char name[64];
    snprintf(name, sizeof name, "giveback %s %zu %s %s", who, number, unit, how);
    printf("# %s: full %.0f, after the frees %.0f, now %.0f MiB; pages with a live block %.0f MiB\n", name,
           (double)(full - empty) / MIB, (double)(after_frees - empty) / MIB, (double)(after - empty) / MIB, bytes / MIB);
    figure(name, "", (double)(after - empty) / MIB, 1.1 * bytes / MIB + 16, "MiB");
    return 0;
}
