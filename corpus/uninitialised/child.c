// finds: end
// It is a child process that reads it.
#include "../corpus.h"
#include <sys/wait.h>

int main(void)
{
    int *codes = malloc(4 * sizeof *codes);
    codes[0] = codes[1] = codes[2] = 0;
    FIX(codes[3] = 0;)
    pid_t child = fork();
    if (child == 0)
        _exit(((int *)hide(codes))[3] ? 7 : 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    free(codes);
    return WEXITSTATUS(status);
}
