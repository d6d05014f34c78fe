/*
 * A program with AddressSanitizer's annotations. Its argument says what it does:
 *
 *   poisoned            only correct accesses; compares the library's answers
 *   poisoned beyond     memcpy reads a byte of an arena behind the part handed out
 *   poisoned whole      memset writes a block that the arena has taken back
 *   poisoned string     strlen reads a string that has no end before the poison
 *   poisoned large      write reads a poisoned byte far inside a large block
 *   poisoned describe   prints a line about each kind of address
 */
#include "check.h"
#include <fcntl.h>

#define WEAK __attribute__((weak))

void __asan_poison_memory_region(const volatile void *, size_t) WEAK;
void __asan_unpoison_memory_region(const volatile void *, size_t) WEAK;
int __asan_address_is_poisoned(const volatile void *) WEAK;
void *__asan_region_is_poisoned(void *, size_t) WEAK;
const char *__asan_locate_address(void *, char *, size_t, void **, size_t *) WEAK;
size_t __asan_get_alloc_stack(void *, void **, size_t, int *) WEAK;
size_t __asan_get_free_stack(void *, void **, size_t, int *) WEAK;
void __asan_describe_address(void *) WEAK;
void __sanitizer_annotate_contiguous_container(const void *, const void *, const void *,
                                               const void *) WEAK;
int __sanitizer_verify_contiguous_container(const void *, const void *, const void *) WEAK;
const void *__sanitizer_contiguous_container_find_bad_address(const void *, const void *,
                                                              const void *) WEAK;
void __sanitizer_annotate_double_ended_contiguous_container(const void *, const void *,
                                                            const void *, const void *,
                                                            const void *, const void *) WEAK;
int __sanitizer_verify_double_ended_contiguous_container(const void *, const void *, const void *,
                                                         const void *) WEAK;

#define POISON(from, bytes)                                                                        \
    (__asan_poison_memory_region ? __asan_poison_memory_region((from), (bytes)) : (void)0)
#define UNPOISON(from, bytes)                                                                      \
    (__asan_unpoison_memory_region ? __asan_unpoison_memory_region((from), (bytes)) : (void)0)

enum { CHUNK = 4000, LARGE = 1 << 20 };

static char *chunk;
static size_t used;

static void arena_begin(void)
{
    chunk = malloc(CHUNK);
    CHECK(chunk);
    memset(chunk, 'x', CHUNK);
    POISON(chunk, CHUNK);
}

static char *arena_take(size_t bytes)
{
    char *at = chunk + used;
    used += (bytes + 7) & ~(size_t)7;
    UNPOISON(at, bytes);
    return at;
}

/* Poison is exact to the byte. */
static void bytes_are_exact(void)
{
    char *block = malloc(300);
    for (size_t from = 0; from < 300; from += 7)
        for (size_t to = from; to <= 300; to += 11) {
            POISON(block + from, to - from);
            for (size_t at = 0; at < 300; at++)
                CHECK(__asan_address_is_poisoned(block + at) == (at >= from && at < to));
            void *first = from < to ? block + from : NULL;
            CHECK(__asan_region_is_poisoned(block, 300) == first);
            CHECK(__asan_region_is_poisoned(block, from) == NULL);
            UNPOISON(block, 300);
        }
    POISON(block + 10, 20);
    UNPOISON(block + 13, 4);
    CHECK(__asan_address_is_poisoned(block + 12) && !__asan_address_is_poisoned(block + 13));
    CHECK(!__asan_address_is_poisoned(block + 16) && __asan_address_is_poisoned(block + 17));
    /* A freed or resized block has no poison, and neither has a block in its place. */
    free(block);
    for (int i = 0; i < 1000; i++) {
        block = calloc(1, 300);
        CHECK(__asan_region_is_poisoned(block, 300) == NULL);
        POISON(block, 300);
        block = realloc(block, i % 2 ? 400 : 200);
        CHECK(__asan_region_is_poisoned(block, 200) == NULL);
        POISON(block + i % 200, 3);
        free(block);
    }
}

/* The poison extends over units. A block that grows in place loses its poison. */
static void large_blocks_have_it_too(void)
{
    char *block = malloc(LARGE);
    POISON(block + LARGE / 2, 200000);
    CHECK(__asan_region_is_poisoned(block, LARGE) == block + LARGE / 2);
    CHECK(__asan_region_is_poisoned(block, LARGE / 2) == NULL);
    UNPOISON(block + LARGE / 2, 150000);
    CHECK(__asan_region_is_poisoned(block, LARGE) == block + LARGE / 2 + 150000);
    memset(block, 1, LARGE / 2 + 150000);
    for (size_t size = LARGE; size < 2 * LARGE; size += 65536) {
        block = realloc(block, size);
        CHECK(__asan_region_is_poisoned(block, size) == NULL);
        POISON(block, size);
    }
    free(block);
}

static void containers_say_what_they_hold(void)
{
    char *begin = malloc(100), *end = begin + 100;
    __sanitizer_annotate_contiguous_container(begin, end, end, begin + 10);
    CHECK(__asan_region_is_poisoned(begin, 100) == begin + 10);
    CHECK(__sanitizer_verify_contiguous_container(begin, begin + 10, end));
    CHECK(__sanitizer_contiguous_container_find_bad_address(begin, begin + 11, end) == begin + 10);
    CHECK(!__sanitizer_verify_contiguous_container(begin, begin + 9, end));
    __sanitizer_annotate_contiguous_container(begin, end, begin + 10, begin + 55);
    CHECK(__sanitizer_verify_contiguous_container(begin, begin + 55, end));
    memset(begin, 1, 55);
    __sanitizer_annotate_contiguous_container(begin, end, begin + 55, end);
    CHECK(__sanitizer_verify_contiguous_container(begin, end, end));
    /* Elements from 30 to 60, then from 50 to 80, then 10 to 20. */
    __sanitizer_annotate_double_ended_contiguous_container(begin, end, begin, end, begin + 30,
                                                           begin + 60);
    CHECK(__sanitizer_verify_double_ended_contiguous_container(begin, begin + 30, begin + 60, end));
    CHECK(!__sanitizer_verify_double_ended_contiguous_container(begin, begin + 30, begin + 61,
                                                                end));
    __sanitizer_annotate_double_ended_contiguous_container(begin, end, begin + 30, begin + 60,
                                                           begin + 50, begin + 80);
    CHECK(__sanitizer_verify_double_ended_contiguous_container(begin, begin + 50, begin + 80, end));
    __sanitizer_annotate_double_ended_contiguous_container(begin, end, begin + 50, begin + 80,
                                                           begin + 10, begin + 20);
    CHECK(__sanitizer_verify_double_ended_contiguous_container(begin, begin + 10, begin + 20, end));
    free(begin);
}

static void other_memory_is_left_alone(void)
{
    static char fixed[64];
    char local[64];
    POISON(fixed, 64);
    POISON(local, 64);
    CHECK(!__asan_address_is_poisoned(fixed) && !__asan_region_is_poisoned(local, 64));
    CHECK(__sanitizer_verify_contiguous_container(fixed, fixed + 8, fixed + 64));
    memset(fixed, 1, 64);
    memset(local, 1, 64);
    /* Memory beyond the block is not poisoned. */
    char *block = malloc(64);
    POISON(block, 4096);
    UNPOISON(block, 64);
    memset(block, 1, 64);
    POISON(block + 64, 8);
    POISON(NULL, 8);
    POISON(block, 0);
    free(block);
    POISON(block, 64);
    CHECK(__asan_address_is_poisoned(block));
}

static void blocks_are_known(void)
{
    void *trace[64], *region = NULL;
    size_t size = 0;
    int thread = 0, local;
    char *block = malloc(100);
    char name[8] = "name";
    CHECK(strcmp(__asan_locate_address(block + 30, name, 8, &region, &size), "heap") == 0);
    CHECK(region == block && size == 100 && name[0] == 0);
    CHECK(strcmp(__asan_locate_address(&local, NULL, 0, NULL, NULL), "unknown") == 0);
    CHECK(__asan_get_alloc_stack(block + 7, trace, 64, &thread) > 1 && thread == 1);
    CHECK(__asan_get_alloc_stack(block, trace, 1, NULL) == 1 && trace[0]);
    CHECK(__asan_get_free_stack(block, trace, 64, NULL) == 0);
    free(block);
    CHECK(__asan_get_free_stack(block, trace, 64, &thread) > 1);
    CHECK(__asan_get_alloc_stack(&local, trace, 64, NULL) == 0);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    arena_begin();
    char *first = arena_take(20), *second = arena_take(16), target[64];
    memset(first, 'a', 20);
    memset(second, 'b', 16);
    if (strcmp(how, "beyond") == 0)
        memcpy(target, first, 24);
    if (strcmp(how, "whole") == 0) {
        POISON(second, 16);
        memset(second, 0, 16);
    }
    volatile long result = 0;
    if (strcmp(how, "string") == 0)
        result = (long)strlen(second);
    if (strcmp(how, "large") == 0) {
        char *block = calloc(1, LARGE);
        POISON(block + 700000, 1);
        result = write(open("/dev/null", O_WRONLY), block + 600000, 200000);
        free(block);
    }
    if (strcmp(how, "describe") == 0) {
        char *freed = malloc(50);
        free(freed);
        __asan_describe_address(chunk + 8);
        __asan_describe_address(chunk + 21);
        __asan_describe_address(freed + 1);
        __asan_describe_address(&freed);
        return 0;
    }
    if (*how == 0 && __asan_poison_memory_region && hw_version) {
        bytes_are_exact();
        large_blocks_have_it_too();
        containers_say_what_they_hold();
        other_memory_is_left_alone();
        blocks_are_known();
    }
    free(chunk);
    return result < 0;
}
