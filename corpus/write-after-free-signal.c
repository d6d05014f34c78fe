// finds: write-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// A handler logs to a buffer that is gone.
#include "corpus.h"
#include <signal.h>

static char *volatile log_buffer;

static void on_signal(int number)
{
    if (log_buffer)
        POKE(log_buffer + 1, number);
}

int main(void)
{
    signal(SIGUSR1, on_signal);
    log_buffer = malloc(SIZE);
    raise(SIGUSR1);
    free(hide(log_buffer));
    FIX(log_buffer = NULL;)
    raise(SIGUSR1);
    return 0;
}
