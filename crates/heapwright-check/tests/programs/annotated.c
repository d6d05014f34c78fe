/*
 * A program with LeakSanitizer's annotations. Its argument says what else it does:
 *
 *   annotated            loses only blocks that the annotations keep
 *   annotated lost       loses another block
 *   annotated ask        asks whether blocks are lost, before it loses another block and after
 *   annotated check      loses another block and requests a check, which ends the program
 */
#include "check.h"

void __lsan_ignore_object(const void *) __attribute__((weak));
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
void __lsan_register_root_region(const void *, size_t) __attribute__((weak));
void __lsan_unregister_root_region(const void *, size_t) __attribute__((weak));
void __lsan_do_leak_check(void) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
int __sanitizer_get_ownership(const volatile void *) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *) __attribute__((weak));
size_t __sanitizer_get_heap_size(void) __attribute__((weak));
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Makes two blocks; the first leads to the second. After the return nothing leads to the first. */
static __attribute__((noinline)) void lose(int how)
{
    char **first = malloc(100);
    CHECK(first);
    *first = malloc(200);
    if (how == 1)
        __lsan_ignore_object(first);
    if (how == 2)
        __lsan_register_root_region(first, 100);
    if (how == 3) {
        __lsan_register_root_region(first, 100);
        __lsan_unregister_root_region(first, 100);
    }
}

static __attribute__((noinline)) void wipe(void)
{
    volatile char frame[8192];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 0;
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    CHECK(__lsan_ignore_object && __lsan_do_leak_check);
    char *block = malloc(77);
    CHECK(__sanitizer_get_ownership(block) == 1 && __sanitizer_get_ownership(block + 1) == 0);
    CHECK(__sanitizer_get_allocated_size(block) >= 77 && __sanitizer_get_allocated_size(how) == 0);
    CHECK(__sanitizer_get_current_allocated_bytes() >= 77);
    CHECK(__sanitizer_get_heap_size() >= __sanitizer_get_current_allocated_bytes());
    free(block);
    lose(1);
    lose(2);
    __lsan_disable();
    __lsan_disable();
    lose(0);
    __lsan_enable();
    lose(0);
    __lsan_enable();
    wipe();
    if (strcmp(how, "ask") == 0) {
        CHECK(__lsan_do_recoverable_leak_check() == 0);
        lose(0);
        wipe();
        CHECK(__lsan_do_recoverable_leak_check() != 0);
        return 0;
    }
    if (strcmp(how, "lost") == 0 || strcmp(how, "check") == 0)
        lose(3);
    wipe();
    if (strcmp(how, "check") == 0) {
        __lsan_do_leak_check();
        check_failed(how, 0, "it has ended");
    }
    return 0;
}
