// Ends without tidying up: _exit, quick_exit, and SIGKILL, with live blocks and
// with output written before.
// asan: alien
#include "corpus.h"
#include <signal.h>
#include <sys/wait.h>

static void quick(void) { churn(10); }

int main(void)
{
    for (int how = 0; how < 3; how++) {
        if (fork() == 0) {
            for (int i = 0; i < 100; i++)
                memset(hide(malloc(1000)), 1, 1000);
            printf("child %d\n", how);
            fflush(stdout);
            at_quick_exit(quick);
            if (how == 0)
                _exit(5);
            if (how == 1)
                quick_exit(6);
            kill(getpid(), SIGKILL);
        }
        int status;
        wait(&status);
        CHECK(how == 2 ? WIFSIGNALED(status) : WEXITSTATUS(status) == 5 + how);
    }
    fflush(stdout);
    char *volatile live = malloc(10000);
    live[0] = 1;
    _exit(0);
}
