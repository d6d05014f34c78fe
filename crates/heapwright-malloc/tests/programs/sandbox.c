/*
 *   sandbox cold|warm kill|say|strict prctl|seccomp exit|_exit|wrong
 *
 * Forbids itself all system calls but those that docs/platforms.md names, before its first
 * allocation (cold) or after many (warm). Then it allocates in each way, and leaves the heap alone
 * until pages go back. It ends, or frees a pointer into a block (wrong). `kill`: another call ends
 * the program. `say`: another call fails with ENOSYS, and the program prints its number at the end.
 * `strict`: the kernel's own mode. There the heap may have no more memory than it has at hand.
 */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

enum { SLOTS = 3000 };
static char *blocks[SLOTS];
static uint64_t seed = 88172645463325252ull;
static volatile int refused[512];

static void use(int rounds, size_t largest)
{
    for (int round = 0; round < rounds; round++) {
        int at = next_random(&seed) % SLOTS;
        size_t size = next_random(&seed) % (next_random(&seed) % 100 ? 3000 : largest);
        free(blocks[at]);
        void *aligned = NULL;
        switch (next_random(&seed) % 16) {
        case 0: blocks[at] = calloc(3, size / 3 + 1); break;
        case 1: blocks[at] = posix_memalign(&aligned, 4096, size) ? NULL : aligned; break;
        case 2: blocks[at] = realloc(malloc(size / 2 + 1), size + 1); break;
        default: blocks[at] = malloc(size);
        }
        if (!blocks[at])
            _exit(3);
        if (size)
            blocks[at][0] = blocks[at][size / 2] = 1;
    }
}

static void empty(void)
{
    for (int at = 0; at < SLOTS; at++) {
        free(blocks[at]);
        blocks[at] = NULL;
    }
}

/* Milliseconds, by a clock that takes no system call. */
static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void wait_busily(long ms)
{
    for (long until = now() + ms; now() < until;)
        free(malloc(50));
}

static void on_refused(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    refused[info->si_syscall & 511]++;
#ifdef __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#else
    ((ucontext_t *)context)->uc_mcontext.regs[0] = -ENOSYS;
#endif
}

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void enter(int says, int by_prctl)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap), ALLOW(SYS_mprotect), ALLOW(SYS_madvise),
        ALLOW(SYS_futex), ALLOW(SYS_write), ALLOW(SYS_clock_gettime), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, says ? SYS_rt_sigreturn : SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, says ? SECCOMP_RET_TRAP : SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    struct sigaction action = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER };
    if (says)
        CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (by_prctl)
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    else
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static void say(void)
{
    for (int number = 0; number < 512; number++) {
        if (!refused[number])
            continue;
        char line[] = "a call of number ...\n";
        for (int at = 0, rest = number; at < 3; at++, rest /= 10)
            line[19 - at] = '0' + rest % 10;
        if (write(2, line, sizeof line - 1) < 0)
            _exit(4);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    int is_strict = !strcmp(argv[2], "strict"), says = !strcmp(argv[2], "say");
    if (!strcmp(argv[1], "warm")) {
        use(20000, 2000000);
        empty();
    }
    if (is_strict) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
        for (int round = 0; round < 100000; round++) {
            void *volatile block = malloc(100);
            if (block == NULL && !strcmp(argv[1], "warm") && round < 100)
                syscall(SYS_exit, 5);
            free(block);
        }
        /* The heap has less than this at hand, and cannot get more. */
        for (int round = 0; round < 4; round++) {
            void *volatile block = malloc(100 << 20);
            if (block != NULL)
                syscall(SYS_exit, 6);
        }
        syscall(SYS_exit, 0);
    }
    enter(says, !strcmp(argv[3], "prctl"));
    if (!strcmp(argv[4], "wrong")) {
        char *volatile block = malloc(40);
        free(block + 8);
        _exit(0);
    }
    use(20000, 2000000);
    wait_busily(300);
    use(20000, 20000);
    /* Enough blocks for a look at the memory limit, and for pages to go back. */
    for (int at = 0; at < 40; at++) {
        free(blocks[at]);
        CHECK((blocks[at] = malloc(1 << 20)) != NULL);
        memset(blocks[at], 1, 1 << 20);
    }
    wait_busily(500);
    empty();
    wait_busily(100);
    use(20000, 3000);
    empty();
    if (says)
        say();
    if (!strcmp(argv[4], "_exit"))
        _exit(0);
    exit(0);
}
