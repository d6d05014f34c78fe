// A program with its own pages of no access, and a handler that opens them one
// by one (sigaction, siginfo). Its faults are none of the allocator's business.
#include "corpus.h"
#include <signal.h>
#include <sys/mman.h>

static char *region;
static volatile int faults;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    char *at = info->si_addr;
    if (at < region || at >= region + (64 << 12))
        _exit(3);
    faults++;
    mprotect((void *)((uintptr_t)at & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    region = mmap(NULL, 64 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 64; i++) {
        churn(20);
        POKE(region + (i << 12) + 100, i);
    }
    printf("%d faults\n", faults);
    munmap(region, 64 << 12);
    return 0;
}
