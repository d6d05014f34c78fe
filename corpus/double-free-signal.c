// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// stack: on_signal
// A handler that tidies up what was tidied up.
#include "corpus.h"
#include <signal.h>

static char *buffer;

NOINLINE void on_signal(int number)
{
    (void)number;
    if (buffer)
        free(hide(buffer));
    buffer = NULL;
}

int main(void)
{
    signal(SIGUSR1, on_signal);
    buffer = malloc(SIZE);
    free(hide(buffer));
    FIX(buffer = NULL;)
    raise(SIGUSR1);
    return 0;
}
