// A run's one line of output: the word `result`, then NAME=VALUE, separated by spaces.
//
//   wall_ns, cpu_ns    of the process since begin(), with all its threads: the threads with
//                      which a collector marks count, too
//   peak               the peak of resident memory, of the program alone
//   checksum           of the program's results: the same with every collector
//
// A load and its interface add further fields with field().

#ifndef RESULT_H
#define RESULT_H

#include "setting.h"

static uint64_t result_wall, result_cpu, result_took;

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static inline size_t resident_now(void) { return line_of("/proc/self/status", "VmRSS"); }
static inline size_t resident_peak(void) { return line_of("/proc/self/status", "VmHWM"); }

static inline void begin(void) {
    settings_end();
    result_wall = now_ns();
    result_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void field(const char *name, uint64_t value) { printf(" %s=%llu", name, (unsigned long long)value); }

static inline void result_begin(uint64_t checksum) {
    uint64_t wall = now_ns() - result_wall, cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - result_cpu;
    size_t peak = resident_peak();
    result_took = cpu;
    printf("result program=%s", program_name);
    field("wall_ns", wall);
    field("cpu_ns", cpu);
    field("peak", peak);
    field("checksum", checksum);
}

// The number of objects, and the processor time of each, in picoseconds.
static inline void object_field(uint64_t objects) {
    field("objects", objects);
    field("object_ps", result_took * 1000 / objects);
}

static inline void result_end(void) {
    printf("\n");
    if (fflush(stdout) != 0)
        die(2, "cannot print the result");
}

#endif
