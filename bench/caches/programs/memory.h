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
#include <fcntl.h>
#include <unistd.h>

// A line `NAME:   123 kB` of a file, in bytes. With system calls alone, for stdio
// would allocate.
static inline size_t line_of(const char *path, const char *name) {
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        die(2, "cannot read /proc/self/smaps_rollup or status: needs Linux 4.14 or newer");
    size_t got = 1;
    ssize_t more;
    text[0] = '\n';
    while (got < sizeof text - 1 && (more = read(file, text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)more;
    close(file);
    text[got] = 0;
    for (char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at[-1] == '\n' && at[strlen(name)] == ':')
            return strtoul(at + strlen(name) + 1, NULL, 10) * 1024;
    die(2, "the kernel does not say how much is resident");
}

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
