// A handler that allocates, raised at a safe place: it did not interrupt the
// allocator, and so it may.
#include "corpus.h"
#include <signal.h>

static char *made;

static void on_signal(int number)
{
    free(made);
    made = calloc(1, (size_t)number * 100);
}

int main(void)
{
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    for (int i = 0; i < 1000; i++) {
        char *p = malloc(100);
        raise(i % 2 ? SIGUSR1 : SIGUSR2);
        free(p);
    }
    free(made);
    return 0;
}
