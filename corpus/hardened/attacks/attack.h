/*
 * The frame of an attack: a main that runs it in fresh processes, and what it says.
 *
 *   attempt()    one try, in a process of its own: whether the attacker got what he wanted. To be ended by
 *                the allocator is to fail.
 *   RUNS         how many tries (20)
 *
 * The last line is `attack: succeeded (WHAT)` or `attack: failed (WHAT)`; the status 0 or 1. An attack
 * succeeds if a quarter of its tries do: who can try again needs no more.
 *
 * What an attacker has here is what bugs give: a write or a read through a pointer that was freed, or past a
 * block's end, or at a distance from a block. What he gets must be more: an address of his choice from malloc,
 * a block that is another's, a secret. He knows the library and its source, not this process's addresses.
 */
#ifndef ATTACK_H
#define ATTACK_H
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RUNS
#define RUNS 20
#endif

static bool attempt(void);

/* The compiler does not know where the pointer is from. */
static inline void *hide(void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

/* What a forged link points to: memory of the program's, shaped as a block would be. */
__attribute__((aligned(64), unused)) static uint64_t target[64];

/* Whether one of so many blocks of a size is at the address. They are kept. */
__attribute__((unused)) static bool obtains(void *wanted, size_t size, int tries)
{
    for (int i = 0; i < tries; i++) {
        void *p = malloc(size);
        if (p == wanted)
            return true;
    }
    return false;
}

static inline int verdict(bool succeeded, const char *what)
{
    printf("attack: %s (%s)\n", succeeded ? "succeeded" : "failed", what);
    return succeeded ? 0 : 1;
}

#ifndef OWN_MAIN
int main(int argc, char **argv)
{
    if (argc > 1)
        _exit(attempt() ? 10 : 11);
    int succeeded = 0, stopped = 0, last = 0;
    for (int i = 0; i < RUNS; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", argv[0], "once", (char *)NULL);
            _exit(12);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 2;
        if (WIFSIGNALED(status))
            stopped++, last = WTERMSIG(status);
        else
            succeeded += WEXITSTATUS(status) == 10;
    }
    char text[100];
    int n = snprintf(text, sizeof text, "%d of %d tries", succeeded, RUNS);
    if (stopped > 0)
        snprintf(text + n, sizeof text - (size_t)n, "; %d ended by SIG%s", stopped, sigabbrev_np(last));
    return verdict(succeeded * 4 >= RUNS, text);
}
#endif
#endif
