// Children that die of what they do: their parent must see the signal, with or
// without a handler of the allocator's (null, SIGBUS of a file, abort, kill).
// asan: alien
#include "corpus.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void dies(int how)
{
    churn(100);
    char *p = malloc(100);
    if (how == 0)
        POKE(hide(NULL), 1);
    if (how == 1)
        PEEK(mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (how == 2)
        PEEK((char *)mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(tmpfile()), 0) + 4096);
    if (how == 3)
        abort();
    if (how == 4)
        kill(getpid(), SIGKILL);
    if (how == 5)
        raise(SIGSEGV);
    free(p);
    exit(0);
}

int main(void)
{
    for (int how = 0; how < 7; how++) {
        fflush(stdout);
        if (fork() == 0)
            dies(how);
        int status;
        wait(&status);
        printf("%d: signal %d, status %d\n", how, WTERMSIG(status), WEXITSTATUS(status));
    }
    return 0;
}
