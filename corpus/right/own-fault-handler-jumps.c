// signal() and siglongjmp out of the handler, again and again, as language
// runtimes do for null checks; the old handler can be had and put back.
#include "corpus.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf out;

static void on_fault(int number)
{
    siglongjmp(out, number);
}

int main(void)
{
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(signal(SIGSEGV, on_fault) != SIG_ERR);
    volatile int seen = 0;
    for (volatile int i = 0; i < 100; i++) {
        char *volatile kept = malloc(100);
        if (sigsetjmp(out, 1) == 0)
            PEEK(i % 2 ? page : (char *)hide((void *)16));
        else
            seen++;
        free(kept);
    }
    CHECK(signal(SIGSEGV, SIG_DFL) == on_fault);
    printf("%d\n", seen);
    return seen == 100 ? 0 : 1;
}
