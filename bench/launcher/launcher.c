// launcher REPORT PROGRAM [ARGUMENTS...]: runs one program and writes what it
// cost to the file REPORT, as one line:
//
//     wall_ns user_us system_us peak_rss_kib exit_code signal
//
// Why it exists: on Linux a process's peak resident size survives exec, so a
// program started by a big parent is charged with the parent's memory. This
// launcher is static and tiny (its own peak is below any dynamic program's),
// and it uses vfork, so that nothing of it is copied. Being static, it ignores
// LD_PRELOAD and hands the environment on untouched.
//
// wait4 counts the program and those of its descendants it has waited for: the
// times are summed, the peak is the largest single process.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        dprintf(2, "usage: launcher REPORT PROGRAM [ARGUMENTS...]\n");
        return 2;
    }
    int report = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (report < 0) {
        dprintf(2, "launcher: cannot write %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    long long start = now_ns();
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0) {
        dprintf(2, "launcher: cannot start a process: %s\n", strerror(errno));
        return 2;
    }
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    long long wall = now_ns() - start;
    long long user = usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec;
    long long system = usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    dprintf(report, "%lld %lld %lld %ld %d %d\n", wall, user, system, usage.ru_maxrss, code, signal);
    return signal ? 128 + signal : code;
}
