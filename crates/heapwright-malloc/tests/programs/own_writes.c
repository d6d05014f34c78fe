/* heapwright's writes raise no signal in the program, also if files may not grow ("limited") or if
 * no process reads standard error. A signal that was pending before stays pending. */
#include "check.h"
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile int came;

static void count(int signal) {
    (void)signal;
    came++;
}

static int is_pending(int signal) {
    sigset_t set;
    CHECK(sigpending(&set) == 0);
    return sigismember(&set, signal);
}

static void close_the_reader(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
    close(ends[0]);
    close(ends[1]);
}

int main(int words, char **word) {
    if (words > 1 && strcmp(word[1], "limited") == 0) {
        struct rlimit none = {0, 0};
        CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
        for (int i = 0; i < 100000; i++)
            free(malloc(i % 5000));
        return 0;
    }
    signal(SIGPIPE, count);
    sigset_t pipe_alone, before, now;
    memset(&before, 0, sizeof before);
    memset(&now, 0, sizeof now);
    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    int errors = dup(2);
    CHECK(errors > 2 && sigprocmask(SIG_BLOCK, 0, &before) == 0);
    close_the_reader();
    errno = 7;
    malloc_stats();
    int ours = came, left = errno;
    /* SIGPIPE is blocked: none is pending afterwards. */
    sigprocmask(SIG_BLOCK, &pipe_alone, 0);
    malloc_stats();
    ours += is_pending(SIGPIPE);
    /* The program's own SIGPIPE stays pending. */
    raise(SIGPIPE);
    malloc_stats();
    int own = is_pending(SIGPIPE);
    sigprocmask(SIG_SETMASK, &before, 0);
    sigprocmask(SIG_BLOCK, 0, &now);
    CHECK(dup2(errors, 2) == 2 && close(errors) == 0);
    CHECK(ours == 0 && own == 1 && came == 1 && left == 7);
    CHECK(memcmp(&before, &now, sizeof now) == 0);
    return 0;
}
