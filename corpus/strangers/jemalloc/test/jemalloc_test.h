/* What jemalloc's integration tests of the standard functions need of its test harness. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LG_SIZEOF_PTR 3
#define SIZE_T_MAX SIZE_MAX
#define BUFERROR_BUF 64
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN
#define TEST_MALLOC_SIZE malloc_usable_size
#define get_errno() errno
#define set_errno(value) (errno = (value))
#define buferror(error, buffer, size) snprintf(buffer, size, "%s", strerrorname_np(error))

typedef void test_t(void);
static int test_failures;

static void test_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    test_failures++;
}

#define TEST_BEGIN(name) static void name(void)
#define TEST_END
#define expect(condition, ...) do { \
        if (!(condition)) { printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); test_fail(__VA_ARGS__); } \
    } while (0)
#define expect_d_eq(a, b, ...) expect((a) == (b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) expect((a) != (b), __VA_ARGS__)
#define expect_false(a, ...) expect(!(a), __VA_ARGS__)
#define expect_ptr_null(a, ...) expect((a) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(a, ...) expect((a) != NULL, __VA_ARGS__)

/* The control interface: purging is trimming; the largest class ends where ptrdiff_t does. */
static int mallctl(const char *name, void *old, size_t *size, void *new_value, size_t new_size) {
    if (strcmp(name, "arena.0.purge") == 0) malloc_trim(0);
    else if (strcmp(name, "arenas.nlextents") == 0) *(unsigned *)old = 1;
    else return ENOENT;
    return 0;
}
static int mallctlnametomib(const char *name, size_t *mib, size_t *length) {
    return strcmp(name, "arenas.lextent.0.size") == 0 ? 0 : ENOENT;
}
static int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *size, void *new_value, size_t new_size) {
    *(size_t *)old = PTRDIFF_MAX;
    return 0;
}

#define test(...) run_tests((test_t *[]){__VA_ARGS__, NULL})
static int run_tests(test_t **tests) {
    for (; *tests; tests++) (*tests)();
    return test_failures != 0;
}
