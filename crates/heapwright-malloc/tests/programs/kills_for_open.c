/* Enters a sandbox that kills for `open` and for a query of resident pages. Then holds 64 MB for a
 * second, and has large blocks of which it touches little. The heap makes neither call. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BLOCKS 64
static char *blocks[BLOCKS];

int main(void)
{
    void *volatile first = malloc(10);
    free(first);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            CHECK((blocks[i] = malloc(1 << 20)) != NULL);
            memset(blocks[i], 1, 1 << 20);
        }
        usleep(50000);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    for (int i = 0; i < 1000; i++) {
        char *volatile sparse = malloc(100000 + i);
        CHECK(sparse != NULL);
        sparse[0] = 1;
        free(sparse);
    }
    return 0;
}
