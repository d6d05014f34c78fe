// kernels CALL[+CALL...] ERROR COMMAND...: runs a command in which the kernel answers system calls with an error, whatever their
// arguments; of madvise:NUMBER, prctl:NUMBER only with that advice, or that operation. CALL is `none` for no filter.
//
// The filter (seccomp) is inherited by all that the command starts.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
// aarch64 never had the older call.
#ifndef SYS_readlink
#define SYS_readlink SYS_readlinkat
#endif

enum { ANY = -1 };

static const struct { const char *name; long number; int argument; } CALLS[] = {
    {"rseq", SYS_rseq, 0},
    {"membarrier", SYS_membarrier, 0},
    {"mincore", SYS_mincore, 0},
    {"madvise", SYS_madvise, 2},
    {"mremap", SYS_mremap, 0},
    {"mseal", SYS_mseal, 0},
    {"getrandom", SYS_getrandom, 0},
    {"sysinfo", SYS_sysinfo, 0},
    {"prctl", SYS_prctl, 0},
    {"prlimit64", SYS_prlimit64, 0},
    {"sched_getaffinity", SYS_sched_getaffinity, 0},
    {"sched_yield", SYS_sched_yield, 0},
    {"statfs", SYS_fstatfs, 0},
    {"fallocate", SYS_fallocate, 0},
    {"readlink", SYS_readlink, 0},
    {"getcwd", SYS_getcwd, 0},
    {"sigaltstack", SYS_sigaltstack, 0},
    {"ppoll", SYS_ppoll, 0},
};

static const struct { const char *name; int number; } ERRORS[] = {{"ENOSYS", ENOSYS}, {"EPERM", EPERM}, {"EINVAL", EINVAL}};

static void refuse(long call, int argument, int value, int error) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)value, 0, value == ANY ? 0 : 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("kernels: no filter");
        exit(125);
    }
}

// Refuses a call by its name. False: there is none.
static int refuse_named(char *name, int error) {
    char *colon = strchr(name, ':');
    int value = ANY;
    if (colon != NULL) {
        *colon = 0;
        value = atoi(colon + 1);
    }
    for (size_t at = 0; at < sizeof CALLS / sizeof *CALLS; at++)
        if (strcmp(CALLS[at].name, name) == 0) {
            refuse(CALLS[at].number, CALLS[at].argument, value, error);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fputs("kernels CALL[+CALL...] ERROR COMMAND...\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "none") != 0) {
        int error = 0;
        for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
            if (strcmp(ERRORS[i].name, argv[2]) == 0)
                error = ERRORS[i].number;
        for (char *name = strtok(argv[1], "+"); name != NULL; name = strtok(NULL, "+"))
            if (error == 0 || !refuse_named(name, error)) {
                fputs("kernels: no such call, or no such error\n", stderr);
                return 2;
            }
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
