/*
 * The common part of the test programs of the debug heap's hooks: libheapwright with the feature
 * `observe` calls them back (src/observe.rs).
 */
#ifndef OBSERVE_H
#define OBSERVE_H

#include "check.h"
#include <stdbool.h>

struct seen {
    /* r)equest, f)ree, a)nother size, s)ignal, d)lclose, e)xit */
    char what;
    unsigned char origin;
    bool zero;
    size_t size, align; /* -1: not known */
    size_t other;       /* the new size, or the address */
    int is_write;       /* -1: not known */
    void *context;
};

enum origin { MALLOC, ALIGNED, NEW, NEW_ARRAY, POSIX_MEMALIGN = 5 };
enum verdict { NOT_OURS, GO_ON, STOP };

#ifdef __cplusplus
extern "C"
#endif
    void hw_observe(int (*)(const struct seen *)) __attribute__((weak));

#endif
