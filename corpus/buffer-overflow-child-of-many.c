// finds: buffer-overflow
// sizes: 40 4096 200000
// words: %SIZE%-byte
// A forked child has not the time to look after all that it was given, but it looks
// after what it made itself: also in the buckets that its parent had begun.
#include "corpus.h"

#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static char *given[200000];
    for (size_t i = 0; i < 200000; i++)
        given[i] = hide(malloc(SIZE > 1000 ? 10 : SIZE));
    pid_t child = fork();
    if (child == 0) {
        char *p = malloc(SIZE);
        memset(hide(p), 'a', SIZE BUG(+ 1));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    for (size_t i = 0; i < 200000; i++)
        free(given[i]);
    return 0;
}
