// Calls as clang's -fsanitize=alloc-token makes them, in both forms: alloc_token apart|together. With
// `apart`, blocks of different groups, and blocks without a token, never lie in one unit of 64 KiB.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <set>
#include <vector>
#include "check.h"

// The library is preloaded.
#define WEAK __attribute__((weak))
extern "C" {
void *__alloc_token_malloc(size_t, size_t) WEAK;
void *__alloc_token_calloc(size_t, size_t, size_t) WEAK;
void *__alloc_token_realloc(void *, size_t, size_t) WEAK;
void *__alloc_token_reallocarray(void *, size_t, size_t, size_t) WEAK;
void *__alloc_token_aligned_alloc(size_t, size_t, size_t) WEAK;
void *__alloc_token_memalign(size_t, size_t, size_t) WEAK;
int __alloc_token_posix_memalign(void **, size_t, size_t, size_t) WEAK;
void *__alloc_token_valloc(size_t, size_t) WEAK;
void *__alloc_token_pvalloc(size_t, size_t) WEAK;
void *__alloc_token__Znwm(size_t, size_t) WEAK;
void *__alloc_token__Znam(size_t, size_t) WEAK;
void *__alloc_token__ZnwmRKSt9nothrow_t(size_t, const std::nothrow_t &, size_t) WEAK;
void *__alloc_token__ZnwmSt11align_val_t(size_t, std::align_val_t, size_t) WEAK;
void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t, std::align_val_t, const std::nothrow_t &, size_t) WEAK;
void *__alloc_token_0_malloc(size_t) WEAK;
void *__alloc_token_1_malloc(size_t) WEAK;
void *__alloc_token_2_malloc(size_t) WEAK;
void *__alloc_token_3_malloc(size_t) WEAK;
void *__alloc_token_3_calloc(size_t, size_t) WEAK;
int __alloc_token_3_posix_memalign(void **, size_t, size_t) WEAK;
void *__alloc_token_1__Znwm(size_t) WEAK;
void *__alloc_token_2__ZnamSt11align_val_tRKSt9nothrow_t(size_t, std::align_val_t, const std::nothrow_t &) WEAK;
}

static std::set<uintptr_t> units[5]; // of the groups, and of blocks without a token
static void note(int group, void *block) { units[group].insert((uintptr_t)block >> 16); }

static void *made(int group, void *block, size_t alignment = 1) {
    CHECK(block && (uintptr_t)block % alignment == 0);
    note(group, block);
    return block;
}

static void *by_name(int group, size_t size) {
    switch (group) {
    case 0: return __alloc_token_0_malloc(size);
    case 1: return __alloc_token_1_malloc(size);
    case 2: return __alloc_token_2_malloc(size);
    case 3: return __alloc_token_3_malloc(size);
    }
    return malloc(size);
}

static void *by_argument(int group, size_t size) {
    // Small tokens, and tokens of a compiler without a limit.
    size_t token = size % 3 ? (size_t)group : (size_t)group << 62 | (size_t)1 << 40;
    return group == 4 ? malloc(size) : __alloc_token_malloc(size, token);
}

int main(int count, char **words) {
    CHECK(count == 2);
    bool apart = !strcmp(words[1], "apart");
    // Many blocks live at a time, and a freed block of one group never serves another group.
    std::vector<char *> live[5];
    for (int round = 0; round < 40; round++)
        for (int group = 0; group < 5; group++) {
            for (size_t size : {8, 24, 100, 1000, 5000}) {
                for (int i = 0; i < 20; i++) {
                    char *block = (char *)(i % 2 ? by_name : by_argument)(group, size);
                    CHECK(block && malloc_usable_size(block) >= size);
                    for (size_t at = 0; apart && at < size; at++)
                        CHECK(block[at] == 0);
                    memset(block, group + 1, size);
                    note(group, block);
                    live[group].push_back(block);
                }
            }
            while (live[group].size() > 150) {
                size_t at = round * 7919 % live[group].size();
                free(live[group][at]);
                live[group][at] = live[group].back();
                live[group].pop_back();
            }
        }
    // A block grows in its group, whatever the token.
    for (int i = 0; i < 200; i++) {
        char *block = (char *)__alloc_token_malloc(40, 2);
        CHECK(block);
        strcpy(block, "kept");
        block = (char *)(i % 2 ? realloc(block, 700) : __alloc_token_realloc(block, 700, 1));
        CHECK(block && !strcmp(block, "kept"));
        note(2, block);
        free(block);
    }
    // The other functions.
    const auto align = std::align_val_t(64);
    for (size_t i = 0; i < 300; i++) {
        size_t size = 1 + i * 13;
        void *block = __alloc_token_calloc(size, 2, 3);
        CHECK(block && ((char *)block)[2 * size - 1] == 0);
        free(made(3, block));
        free(made(3, __alloc_token_3_calloc(size, 1)));
        free(made(3, __alloc_token_realloc(nullptr, size, 3)));
        free(made(3, __alloc_token_reallocarray(nullptr, size, 2, 3)));
        free(made(3, __alloc_token_aligned_alloc(64, size, 3), 64));
        free(made(3, __alloc_token_memalign(128, size, 3), 128));
        CHECK(!__alloc_token_posix_memalign(&block, 32, size, 3));
        free(made(3, block, 32));
        CHECK(!__alloc_token_3_posix_memalign(&block, 32, size));
        free(made(3, block, 32));
        free(made(3, __alloc_token_valloc(size, 3), 4096));
        block = made(3, __alloc_token_pvalloc(size, 3), 4096);
        CHECK(malloc_usable_size(block) >= 4096);
        free(block);
        ::operator delete(made(1, __alloc_token__Znwm(size, 1)), size);
        ::operator delete(made(1, __alloc_token_1__Znwm(size)));
        ::operator delete[](made(1, __alloc_token__Znam(size, 1)));
        ::operator delete(made(1, __alloc_token__ZnwmRKSt9nothrow_t(size, std::nothrow, 1)));
        ::operator delete(made(1, __alloc_token__ZnwmSt11align_val_t(size, align, 1), 64), align);
        block = __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size, align, std::nothrow, 2);
        ::operator delete[](made(2, block, 64), align);
        block = __alloc_token_2__ZnamSt11align_val_tRKSt9nothrow_t(size, align, std::nothrow);
        ::operator delete[](made(2, block, 64), align);
    }
    // Requests that must fail, in the way of each function.
    size_t most = (size_t)-1 / 2 + 100;
    CHECK(!__alloc_token_malloc(most, 1) && !__alloc_token_2_malloc(most) && !__alloc_token_calloc(most, 3, 1));
    CHECK(!__alloc_token_reallocarray(nullptr, most, 3, 1) && !__alloc_token_aligned_alloc(3, 3, 1));
    CHECK(!__alloc_token__ZnwmRKSt9nothrow_t(most, std::nothrow, 1));
    bool thrown = false;
    try {
        __alloc_token_1__Znwm(most);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    for (auto &blocks : live)
        for (char *one : blocks)
            free(one);
    // The program's own containers belong to no group.
    for (int one = 0; one < 5; one++)
        for (int other = 0; apart && other < one; other++)
            for (uintptr_t unit : units[one])
                CHECK(!units[other].count(unit));
    return 0;
}
