// The kernel's figures of memory.
//
//   rss_peak    VmHWM of /proc/self/status
//   rss         Rss of /proc/self/smaps_rollup, exactly: the kernel walks the page
//   anonymous   tables. The part outside of files: heap, stacks, our tables, and
//               the written pages of libraries
//
// The driver subtracts the memory outside the heap:
//
//   heap = anonymous - stacks - own tables - the empty program's
//
// and at the peak the same of rss_peak, with the pages of files as they are at the end.

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
