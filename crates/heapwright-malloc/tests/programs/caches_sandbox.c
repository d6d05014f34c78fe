/*
 *   caches_sandbox FORKS
 *
 * A program enters a sandbox without `membarrier` after it has begun to allocate. It forks while
 * its threads continue. In a child no block may be handed out twice.
 */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 3000 };

static void *be_busy(void *seed) {
    size_t *blocks[64] = {0};
    unsigned random = (unsigned)(size_t)seed;
    for (;;) {
        random = random * 1103515245 + 12345;
        int at = random >> 16 & 63;
        if (blocks[at]) {
            CHECK(*blocks[at] == (size_t)blocks[at]);
            free(blocks[at]);
            blocks[at] = 0;
        } else {
            blocks[at] = malloc(16 + (random >> 8 & 127));
            *blocks[at] = (size_t)blocks[at];
        }
    }
    return 0;
}

static void be_a_child(void) {
    static size_t *blocks[BLOCKS];
    alarm(20);
    for (size_t at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(16 + at % 128);
        blocks[at][0] = at;
        blocks[at][1] = ~at;
    }
    for (size_t at = 0; at < BLOCKS; at++)
        if (blocks[at][0] != at || blocks[at][1] != ~at)
            _exit(7);
    for (size_t at = 0; at < BLOCKS; at++)
        free(blocks[at]);
    _exit(0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    void *volatile first = malloc(10);
    free(first);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* If the kernel has no sandboxes, the forks are tried all the same. */
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    for (size_t at = 1; at <= THREADS; at++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, 0, be_busy, (void *)at) == 0);
    }
    for (int at = 0; at < atoi(argv[1]); at++) {
        pid_t child = fork();
        if (child == 0)
            be_a_child();
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    _exit(0);
}
