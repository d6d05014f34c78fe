/* jemalloc's and gperftools' functions beside malloc, in a program that is linked with them. */
#include "check.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
size_t xallocx(void *, size_t, size_t, int);
size_t sallocx(const void *, int);
void dallocx(void *, int);
void sdallocx(void *, size_t, int);
size_t nallocx(size_t, int);
int mallctl(const char *, void *, size_t *, void *, size_t);
int mallctlnametomib(const char *, size_t *, size_t *);
int mallctlbymib(const size_t *, size_t, void *, size_t *, void *, size_t);
void malloc_stats_print(void (*)(void *, const char *), void *, const char *);
void *tc_malloc(size_t);
void *tc_calloc(size_t, size_t);
void *tc_realloc(void *, size_t);
void tc_free(void *);
void tc_free_sized(void *, size_t);
void *tc_memalign(size_t, size_t);
size_t tc_malloc_size(void *);
void *tc_new(size_t);
void tc_delete(void *);
void *tc_newarray_nothrow(size_t, const void *);
void tc_deletearray(void *);
int MallocExtension_GetNumericProperty(const char *, size_t *);
void MallocExtension_ReleaseFreeMemory(void);
void MallocExtension_GetStats(char *, int);
int MallocExtension_GetOwnership(const void *);
size_t malloc_usable_size(void *);

#define LG_ALIGN(n) (n)
#define ZERO 0x40

static size_t figure(const char *name)
{
    uint64_t epoch = 1;
    size_t value = 0, size = sizeof epoch;
    CHECK(mallctl("epoch", &epoch, &size, &epoch, sizeof epoch) == 0);
    size = sizeof value;
    CHECK(mallctl(name, &value, &size, NULL, 0) == 0);
    return value;
}

static bool zeros(const char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static char printed[16384];
static void print(void *into, const char *text) { strncat(into, text, sizeof printed - 1); }

static void blocks(void)
{
    char *block = mallocx(100, 0);
    CHECK(block != NULL && sallocx(block, 0) >= 100 && nallocx(100, 0) == sallocx(block, 0));
    CHECK(xallocx(block, 100, 0, 0) == sallocx(block, 0));
    memset(block, 7, sallocx(block, 0));
    size_t before = sallocx(block, 0);
    block = rallocx(block, 50000, ZERO);
    CHECK(block != NULL && block[before - 1] == 7 && zeros(block, before, sallocx(block, 0)));
    sdallocx(block, 50000, 0);
    for (int shift = 5; shift < 17; shift++) {
        block = mallocx(300, LG_ALIGN(shift) | ZERO);
        CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << shift) == 0 && zeros(block, 0, 300));
        CHECK(nallocx(300, LG_ALIGN(shift)) <= sallocx(block, 0) + 65536);
        memset(block, 1, 300);
        block = rallocx(block, 5000, LG_ALIGN(shift));
        CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << shift) == 0 && block[299] == 1);
        if (shift % 2)
            dallocx(block, LG_ALIGN(shift));
        else
            sdallocx(block, 5000, LG_ALIGN(shift));
    }
    CHECK(nallocx(SIZE_MAX, 0) == 0);
    // Their functions free malloc's blocks, and free takes their blocks.
    free(mallocx(1000, 0));
    dallocx(malloc(1000), 0);
    tc_free(malloc(10));
    free(tc_malloc(10));
}

static void controls(void)
{
    size_t before = figure("stats.allocated");
    char *block = mallocx(64 << 20, 0);
    memset(block, 1, 64 << 20);
    size_t after = figure("stats.allocated");
    CHECK(after - before >= 60 << 20 && after - before <= 70 << 20);
    CHECK(figure("stats.resident") >= figure("stats.active"));
    CHECK(figure("stats.active") >= figure("stats.allocated"));
    CHECK(figure("stats.mapped") >= figure("stats.resident"));
    size_t pages = figure("stats.arenas.4096.pactive");
    CHECK(pages >= (64 << 20) / 65536);
    dallocx(block, 0);
    CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    CHECK(figure("stats.resident") < after);

    const char *version = NULL;
    size_t size = sizeof version;
    CHECK(mallctl("version", &version, &size, NULL, 0) == 0 && strstr(version, "heapwright") != NULL);
    unsigned arenas = 0;
    size = sizeof arenas;
    CHECK(mallctl("arenas.narenas", &arenas, &size, NULL, 0) == 0 && arenas == 1);
    bool profiles = true;
    size = sizeof profiles;
    CHECK(mallctl("opt.prof", &profiles, &size, NULL, 0) == 0 && !profiles);
    ptrdiff_t decay = 100;
    size = sizeof decay;
    CHECK(mallctl("arenas.dirty_decay_ms", NULL, NULL, &decay, sizeof decay) == 0);
    CHECK(mallctl("arenas.dirty_decay_ms", &decay, &size, NULL, 0) == 0 && decay == 100);
    CHECK(mallctl("arenas.dirty_decay_ms", NULL, NULL, &decay, 1) == 22 /* EINVAL */);

    CHECK(mallctl("no.such.name", NULL, NULL, NULL, 0) == 2 /* ENOENT */);
    CHECK(mallctl("thread.allocatedp", NULL, NULL, NULL, 0) == 2);
    CHECK(mallctl("arena.x.purge", NULL, NULL, NULL, 0) == 2);
    CHECK(mallctl("stats.allocated", NULL, NULL, &size, sizeof size) == 1 /* EPERM */);
    char small[2];
    size = sizeof small;
    CHECK(mallctl("stats.allocated", small, &size, NULL, 0) == 22 && size == 2);

    size_t mib[4], length = 4;
    CHECK(mallctlnametomib("stats.arenas.0.pactive", mib, &length) == 0 && length == 4 && mib[2] == 0);
    mib[2] = 4096;
    size = sizeof pages;
    CHECK(mallctlbymib(mib, length, &pages, &size, NULL, 0) == 0);
    CHECK(mallctlbymib(mib, 1, &pages, &size, NULL, 0) == 2);
    CHECK(mallctlnametomib("no.such.name", mib, &length) == 2);
    mib[0] = SIZE_MAX;
    CHECK(mallctlbymib(mib, 1, NULL, NULL, NULL, 0) == 2 && mallctlbymib(mib, 0, NULL, NULL, NULL, 0) == 2);
    malloc_stats_print(print, printed, "J");
    CHECK(strstr(printed, "live blocks") != NULL);
}

static void gperftools(void)
{
    char *block = tc_calloc(10, 100);
    CHECK(block != NULL && zeros(block, 0, 1000) && tc_malloc_size(block) >= 1000);
    block = tc_realloc(block, 100000);
    CHECK(block != NULL && zeros(block, 0, 1000));
    CHECK(MallocExtension_GetOwnership(block) == 1 && MallocExtension_GetOwnership(&block) == 2);
    tc_free_sized(block, 100000);
    block = tc_memalign(4096, 10);
    CHECK(block != NULL && (uintptr_t)block % 4096 == 0);
    free(block);
    tc_delete(tc_new(30));
    tc_deletearray(tc_newarray_nothrow(30, NULL));
    size_t live = 0, none = 0;
    block = tc_malloc(1 << 20);
    CHECK(MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &live) == 1 && live >= 1 << 20);
    tc_free(block);
    CHECK(MallocExtension_GetNumericProperty("no.such.property", &none) == 0);
    MallocExtension_ReleaseFreeMemory();
    char text[100];
    MallocExtension_GetStats(text, sizeof text);
    CHECK(strlen(text) == sizeof text - 1 && strstr(text, "heapwright") != NULL);
    MallocExtension_GetStats(text, 0);
}

int main(void)
{
    blocks();
    controls();
    gperftools();
    puts("ok");
    return 0;
}
