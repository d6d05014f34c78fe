// The kernel's figures of memory.
//
//   rss_peak    VmHWM of /proc/self/status
//   rss         Rss of /proc/self/smaps_rollup, exactly: the kernel walks the page tables
//   anonymous   its part outside of files: heap, stacks, our tables, and the written pages of
//               libraries
//
// The driver subtracts the memory outside the heap:
//
//   heap = anonymous - stacks - own tables - the empty program's
//
// The heap at the peak comes from rss_peak in the same way, minus the pages of files at the end.

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
