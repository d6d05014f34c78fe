// golden-sizes: entry points at sizes, each in steady states, for ci/golden.sh sizes. Callgrind writes its counts at each
// call of `part`. For each entry point, state and size: warm-up | part | 64 pairs | part | ... | 64 pairs | part
//
// A pair is an allocation and its free: one at once after the other (`alone`), or 8 allocations and then their 8 frees
// (`eight`). `after` is `alone` of malloc, after the frees of 8 blocks of 1,000,000 bytes, which fill the thread's
// stash. For `realloc` a pair is the call that gives a byte back, and the free. Prints a line `ENTRY-STATE-SIZE` for each.
//
// The program has a clock of its own, which moves between cells only. So a heap's work at each tick falls into the
// warm-up, and no count depends on the machine's speed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 64, PARTS = 4, WARM_UP = 4 };
enum entry { MALLOC, CALLOC, ALIGNED, NEW, REALLOC, ENTRIES };
static const char *const names[ENTRIES] = {"malloc", "calloc", "aligned", "new", "realloc"};
enum state { ALONE, EIGHT, AFTER, STATES };
static const char *const states[STATES] = {"alone", "eight", "after"};
static const size_t sizes[] = {16, 48, 300, 600, 4000, 8000, 12000, 24000, 40000, 100000, 1000000};

static void *(*operator_new)(size_t);
static void (*sized_delete)(void *, size_t);

static struct timespec now = {1000, 0};
int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = now;
    return 0;
}

__attribute__((noinline)) void part(void) { __asm__ volatile(""); }
__attribute__((noinline)) void *call_get(enum entry entry, void *old, size_t size) {
    switch (entry) {
    case MALLOC: return malloc(size);
    case CALLOC: return calloc(1, size);
    case ALIGNED: return aligned_alloc(64, size);
    case NEW: return operator_new(size);
    default: return realloc(old, size - 1);
    }
}
__attribute__((noinline)) void call_put(enum entry entry, void *block, size_t size) {
    if (entry == NEW)
        sized_delete(block, size);
    else
        free(block);
}

static void pairs(enum entry entry, size_t size, int at_a_time) {
    void *blocks[8] = {NULL};
    for (int done = 0; done < PAIRS; done += at_a_time) {
        for (int i = 0; i < at_a_time && entry == REALLOC; i++)
            blocks[i] = malloc(size);
        for (int i = 0; i < at_a_time; i++)
            blocks[i] = call_get(entry, blocks[i], size);
        for (int i = 0; i < at_a_time; i++)
            call_put(entry, blocks[i], size);
    }
}

int main(void) {
    // (ISO C has no conversion from an object pointer to a function pointer.)
    *(void **)&operator_new = dlsym(RTLD_DEFAULT, "_Znwm");
    *(void **)&sized_delete = dlsym(RTLD_DEFAULT, "_ZdlPvm");
    // (`alone` comes first: with 8 blocks at a time a thread's lists keep blocks, which make pairs faster.)
    for (enum state state = 0; state < STATES; state++)
        for (enum entry entry = 0; entry < ENTRIES; entry++) {
            if (entry == NEW && (operator_new == NULL || sized_delete == NULL))
                continue;
            if (entry != MALLOC && state == AFTER)
                continue;
            const int at_a_time = state == EIGHT ? 8 : 1;
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                printf("%s-%s-%zu\n", names[entry], states[state], sizes[i]);
                now.tv_sec++;
                if (state == AFTER)
                    pairs(MALLOC, 1000000, 8);
                for (int warm_up = 0; warm_up < WARM_UP; warm_up++)
                    pairs(entry, sizes[i], at_a_time);
                for (int count = 0; count < PARTS; count++) {
                    part();
                    pairs(entry, sizes[i], at_a_time);
                }
                part();
            }
        }
    return 0;
}
