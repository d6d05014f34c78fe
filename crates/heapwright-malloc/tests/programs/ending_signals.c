/*
 * Signals that end a process with a last check. The program's actions and queries give the same as
 * without the library, and the signal ends the process. The argument names the case.
 */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static void *volatile lost;

static void note(int signal)
{
    came = signal;
}

static void again_by_default(int number)
{
    came = number;
    signal(number, SIG_DFL);
    raise(number);
}

static void again(int number)
{
    came = number;
    raise(number);
}

static void again_with_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_signo == number)
        again(number);
}

/* One-shot handlers: the default action is back while they run. */
static void once(void)
{
    struct sigaction old, note_once = { .sa_handler = note, .sa_flags = (int)(SA_RESETHAND | SA_RESTART) };
    CHECK(sigaction(SIGHUP, &note_once, &old) == 0 && old.sa_handler == SIG_DFL);
    CHECK(sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == note);
    CHECK(old.sa_flags & (int)SA_RESETHAND && old.sa_flags & SA_RESTART);
    CHECK(raise(SIGHUP) == 0 && came == SIGHUP);
    CHECK(sigaction(SIGHUP, &note_once, &old) == 0 && old.sa_handler == SIG_DFL);
    CHECK(signal(SIGHUP, SIG_IGN) == note);
    came = 0;
    CHECK(raise(SIGHUP) == 0 && came == 0 && sysv_signal(SIGHUP, note) == SIG_IGN);
    CHECK(raise(SIGHUP) == 0 && came == SIGHUP && signal(SIGHUP, SIG_DFL) == SIG_DFL);
    /* A child has its parent's handler, and the parent keeps it. */
    CHECK(sysv_signal(SIGHUP, note) == SIG_DFL);
    for (int shares = 0; shares < 2; shares++) {
        pid_t child = shares ? vfork() : fork();
        if (child == 0) {
            raise(SIGHUP);
            raise(SIGHUP);
            _exit(9);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
    }
    CHECK(signal(SIGHUP, SIG_DFL) == note);
    came = 0;
}

/* The handlers that the program sees. */
static void handlers(void)
{
    const int all[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGALRM, SIGSTKFLT, SIGRTMIN, SIGRTMIN + 3, SIGRTMAX };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        int number = all[i];
        struct sigaction old, note_it = { .sa_handler = note, .sa_flags = SA_RESTART };
        struct sigaction by_default = { .sa_handler = SIG_DFL };
        CHECK(sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
        CHECK(signal(number, note) == SIG_DFL);
        CHECK(raise(number) == 0 && came == number);
        came = 0;
        CHECK(signal(number, SIG_IGN) == note);
        CHECK(raise(number) == 0 && came == 0);
        CHECK(sigaction(number, &by_default, &old) == 0 && old.sa_handler == SIG_IGN);
        CHECK(sigaction(number, &note_it, &old) == 0 && old.sa_handler == SIG_DFL);
        CHECK(sigaction(number, &by_default, &old) == 0 && old.sa_handler == note && old.sa_flags & SA_RESTART);
        CHECK(signal(number, SIG_DFL) == SIG_DFL);
    }
    /* A program that is executed has the default action, which ends it. */
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "100", (char *)NULL);
        _exit(9);
    }
    int status;
    char byte;
    CHECK(close(ends[1]) == 0 && read(ends[0], &byte, 1) == 0);
    CHECK(kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    /* A signal ends a child of vfork, and its parent continues. */
    child = vfork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* Loses a block. Its address stays on the stack only below all later frames. */
static __attribute__((noinline)) void lose(void)
{
    char volatile room[1 << 16];
    room[0] = 0;
    lost = malloc(40);
    lost = NULL;
    lost = malloc(8);
    (void)room[0];
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "handlers";
    if (strcmp(how, "handlers") == 0) {
        handlers();
        once();
        return 0;
    }
    lose();
    if (strcmp(how, "again") == 0)
        signal(SIGTERM, again_by_default);
    if (strcmp(how, "once") == 0) {
        struct sigaction action = { .sa_handler = again, .sa_flags = (int)SA_RESETHAND };
        CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    }
    if (strcmp(how, "once-with-info") == 0) {
        struct sigaction action = { .sa_sigaction = again_with_info, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_SIGINFO) };
        CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    }
    if (strcmp(how, "storm") == 0) {
        /*
         * A signal in the midst of malloc, most likely. A child that outlives its parent would
         * report the parent's blocks, so this child has no last check.
         */
        if (fork() == 0) {
            usleep(50000);
            kill(getppid(), SIGTERM);
            raise(SIGKILL);
        }
        for (;;)
            free(malloc(rand() % 5000));
    }
    raise(SIGTERM);
    return 1;
}
