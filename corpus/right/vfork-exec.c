// vfork and exec, and posix_spawn, from a program with many blocks.
// asan: alien
#include "corpus.h"
#include <spawn.h>
#include <sys/wait.h>

int main(void)
{
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = calloc(1, (size_t)i * 100 + 1);
    char *argv[] = { "true", NULL };
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execv("/bin/true", argv);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        CHECK(status == 0);
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) == 0);
        waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    return 0;
}
