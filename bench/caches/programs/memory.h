// What the kernel says is in memory.
//
//   rss_peak    VmHWM of /proc/self/status
//   rss         Rss of /proc/self/smaps_rollup, exactly: the kernel walks the page
//   anonymous   tables. Its part that is no file: heap, stacks, our tables, and
//               what libraries have written to
//
// The driver takes off what is not the heap's:
//
//   heap = anonymous - stacks - own tables - what the empty program has of it
//
// and at the peak the same, of rss_peak, with what is of files as it is at the end.

#ifndef MEMORY_H
#define MEMORY_H

#include "blocks.h"

struct resident {
    size_t peak, now, anonymous;
};

static inline struct resident resident(void) {
    struct resident r;
    r.peak = line_of("/proc/self/status", "VmHWM");
    r.now = line_of("/proc/self/smaps_rollup", "Rss");
    r.anonymous = line_of("/proc/self/smaps_rollup", "Anonymous");
    return r;
}

#endif
