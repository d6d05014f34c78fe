// The common parts of the programs for memory bounds: the kernel's count of resident memory,
// random sizes, touched blocks, and the line of a figure.
//
// A program touches its own tables (static, or mapped) before it takes the baseline. So the
// resident memory above the baseline is the heap's, except for the stacks of threads. Live bytes
// are the requested ones.
//
// A figure is one line, fields separated by tabs, for ci/bounds.sh:
//
//     figure   measured   at most   unit
//
// The unit is "x" for a ratio. Other lines are for people.

#ifndef BOUNDS_H
#define BOUNDS_H

#include "../caches/programs/base.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define KIB (1024.0)
#define MIB (1024.0 * 1024.0)

static inline void *must(void *p) {
    if (p == NULL)
        die(2, "out of memory");
    return p;
}

// Resident bytes of this process, exactly: the kernel walks the page tables.
// The counters in /proc/self/statm lag behind by up to some MiB a processor.
static inline size_t resident(void) { return line_of("/proc/self/smaps_rollup", "Rss"); }

// A block whose every page is in memory.
static inline char *block(size_t size) {
    char *p = must(malloc(size));
    for (size_t at = 0; at < size; at += PAGE)
        p[at] = 1;
    p[size - 1] = 1;
    return p;
}

static inline void shuffle(void **items, size_t count, uint64_t *state) {
    for (size_t i = count; i > 1; i--) {
        size_t j = next_random(state) % i;
        void *other = items[j];
        items[j] = items[i - 1];
        items[i - 1] = other;
    }
}

static inline pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        die(2, "cannot start a thread");
    return thread;
}

static inline void sleep_ms(long ms) {
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static inline double now_ms(void) { return (double)now_ns() / 1e6; }

// Runs this program with the same words in another process, with a variable set (NULL: unset). In
// that process BOUNDS_RESULT is set, and `child_says` reports the number that this function
// returns.
static inline double in_child(char **argv, const char *variable, const char *value) {
    int ends[2];
    if (pipe(ends) != 0)
        die(2, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0)
        die(2, "cannot fork");
    if (child == 0) {
        char number[32];
        snprintf(number, sizeof number, "%d", ends[1]);
        setenv("BOUNDS_RESULT", number, 1);
        if (value == NULL)
            unsetenv(variable);
        else
            setenv(variable, value, 1);
        execv("/proc/self/exe", argv);
        _exit(2);
    }
    close(ends[1]);
    double found;
    int status;
    if (read(ends[0], &found, sizeof found) != sizeof found || waitpid(child, &status, 0) != child || status != 0)
        die(2, "the process beside this one failed");
    return found;
}

static inline int is_child(void) { return getenv("BOUNDS_RESULT") != NULL; }

static inline int child_says(double found) {
    int file = atoi(getenv("BOUNDS_RESULT"));
    return write(file, &found, sizeof found) == sizeof found ? 0 : 2;
}

static inline void figure(const char *name, const char *what, double measured, double at_most, const char *unit) {
    printf("%s%s\t%.2f\t%.2f\t%s\n", name, what, measured, at_most, unit);
}

#endif
