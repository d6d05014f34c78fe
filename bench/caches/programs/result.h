// A run's one line of output: the word `result`, then NAME=VALUE, separated by
// spaces. bench/figures reads it, and bench/caches/figures.txt uses the names.
//
// A program calls begin() when its tables are ready, and result_begin() after the last work, while
// the measured memory still exists. Between result_begin() and result_end() it may add its own
// fields.

#ifndef RESULT_H
#define RESULT_H

#include "threads.h"

static uint64_t began_ns, began_cpu_ns;

static inline void begin(void) {
    began_cpu_ns = cpu_ns();
    began_ns = now_ns();
}

static inline void field(const char *name, double value) { printf(" %s=%.0f", name, value); }

static inline void result_begin(size_t threads) {
    uint64_t wall = now_ns() - began_ns, cpu = cpu_ns() - began_cpu_ns;
    live_flush();
    spent_flush();
    // Reads the memory before the first output, because stdio allocates.
    struct resident memory = resident();
    size_t stacks_resident = slots == NULL ? 0 : stack_bytes();
    // The work's time, without threads that still exist and idle.
    struct spent all = spent_sum;
    printf("result program=%s", program_name);
    field("threads", (double)threads);
    field("wall_ns", (double)wall);
    field("cpu_ns", (double)cpu);
    field("operations", (double)all.calls);
    printf(" ns_an_operation=%.2f", all.calls == 0 ? 0 : (double)wall / (double)all.calls);
    field("live_peak", (double)live_peak);
    field("live_error", (double)(slot_count * LIVE_STEP));
    field("rss_peak", (double)memory.peak);
    field("rss_end", (double)memory.now);
    field("anonymous_end", (double)memory.anonymous);
    field("stacks", (double)stacks_resident);
    field("own", (double)own_bytes);
    if (clock_every != 0) {
        double inside = (double)all.ticks / ticks_a_ns;
        // A sample stands for all calls.
        if (clock_every > 1)
            inside = all.timed == 0 ? 0 : inside / (double)all.timed * (double)all.calls;
        field("every", clock_every);
        field("timed", (double)all.timed);
        field("inside_ns", inside);
        printf(" clock_ns=%.2f", (double)clock_ticks / ticks_a_ns);
    }
}

static inline void result_end(void) {
    printf("\n");
    if (fflush(stdout) != 0)
        die(2, "cannot print the result");
}

#endif
