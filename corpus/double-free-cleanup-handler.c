// finds: double-free
// sizes: 24 3000
// flags: -pthread
// A thread's cleanup handler runs although its work was done already.
#include "corpus.h"
#include <pthread.h>

int main(void)
{
    char *p = malloc(SIZE);
    pthread_cleanup_push(free, p);
    free(hide(p));
    pthread_cleanup_pop(0 BUG(+ 1));
    return 0;
}
