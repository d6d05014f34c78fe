/*
 * Allocation before main (constructors of every priority, and the earliest
 * array of all) and after it (handlers of exit, destructors).
 */
#include "check.h"

static char *made[6];

static void make(int at)
{
    made[at] = malloc((size_t)at * 1000 + 10);
    CHECK(made[at] != NULL);
    paint(made[at], (size_t)at * 1000 + 10, (size_t)at);
    char *p = calloc(100, (size_t)at + 1);
    CHECK(p != NULL && is_zero(p, 100 * ((size_t)at + 1)));
    p = realloc(p, 70000);
    CHECK(p != NULL);
    free(p);
}

static void check(int at)
{
    CHECK(is_painted(made[at], (size_t)at * 1000 + 10, (size_t)at));
    free(made[at]);
    made[at] = NULL;
    free(malloc(5000));
}

static void earliest(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    make(0);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) =
    earliest;

__attribute__((constructor(101))) static void first(void) { make(1); }
__attribute__((constructor(500))) static void second(void) { make(2); }
__attribute__((constructor)) static void third(void) { make(3); }
__attribute__((destructor)) static void last(void) { check(0); }
__attribute__((destructor(500))) static void later(void) { check(1); }
__attribute__((destructor(101))) static void latest(void) { check(2); }

static void at_exit(void)
{
    make(4);
    check(3);
    check(4);
}

static void on_end(int status, void *argument)
{
    CHECK(status == 0);
    CHECK(is_painted(argument, 50, 9));
    free(argument);
}

int main(void)
{
    /* More handlers than glibc has room for, so that glibc allocates. */
    for (int i = 0; i < 200; i++) {
        char *p = malloc(50);
        CHECK(p != NULL);
        paint(p, 50, 9);
        CHECK(on_exit(on_end, p) == 0);
    }
    CHECK(atexit(at_exit) == 0);
    make(5);
    check(5);
    return 0;
}
