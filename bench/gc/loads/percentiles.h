// Numbers and their percentiles, in a table outside the heap.

#ifndef PERCENTILES_H
#define PERCENTILES_H

#include "result.h"

struct numbers {
    uint64_t *all;
    size_t count;
};

static inline struct numbers numbers_new(size_t most) {
    return (struct numbers){ .all = table(most * sizeof(uint64_t)) };
}

static inline void numbers_add(struct numbers *numbers, uint64_t number) { numbers->all[numbers->count++] = number; }

static int numbers_compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// The smallest number that is at least as large as `of_1000` in 1000 of the numbers, which are
// sorted.
static inline uint64_t numbers_below(const struct numbers *numbers, size_t of_1000) {
    size_t at = (numbers->count * of_1000 + 999) / 1000;
    return numbers->count == 0 ? 0 : numbers->all[at == 0 ? 0 : at - 1];
}

// Adds fields NAME_p50 ... NAME_p99, NAME_p999 and NAME_most. Sorts the numbers.
static inline void numbers_fields(const char *name, struct numbers *numbers) {
    static const size_t asked[] = { 500, 660, 750, 800, 900, 950, 980, 990 };
    qsort(numbers->all, numbers->count, sizeof numbers->all[0], numbers_compare);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        printf(" %s_p%zu=%llu", name, asked[i] / 10, (unsigned long long)numbers_below(numbers, asked[i]));
    printf(" %s_p999=%llu", name, (unsigned long long)numbers_below(numbers, 999));
    printf(" %s_most=%llu", name, (unsigned long long)numbers_below(numbers, 1000));
}

#endif
