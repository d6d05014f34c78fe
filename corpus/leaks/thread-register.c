// leaks: reachable 1 SIZE at A in main
// sizes: 24 3000 400000
// flags: -pthread
// valgrind: differs It calls possibly lost what the C library keeps for the thread, also in the twin.
// A thread that waits in the kernel has the only pointer in a register, and nowhere in memory.
#include "corpus.h"
#include <pthread.h>

void *volatile handed;

/* Takes the pointer, leaves NULL in its place, and waits for ever. */
static void *work(void *unused)
{
    void *volatile *from = &handed;
#if defined __x86_64__
    __asm__ volatile("xor %%r12d, %%r12d\n xchg %%r12, (%0)\n 1: mov $34, %%eax\n syscall\n jmp 1b"
                     : : "r"(from) : "rax", "rcx", "r11", "r12", "memory");
#elif defined __aarch64__
    __asm__ volatile("ldr x19, [%0]\n str xzr, [%0]\n"
                     "1: mov x0, #0\n mov x1, #0\n mov x2, #0\n mov x3, #0\n mov x4, #0\n mov x8, #73\n svc #0\n b 1b"
                     : : "r"(from) : "x0", "x1", "x2", "x3", "x4", "x8", "x19", "memory");
#endif
    return unused;
}

int main(void)
{
    pthread_t thread;
    handed = malloc(SIZE); // LEAK A
    POKE(handed, 1);
    FIX(free(handed); handed = (void *)1;)
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_detach(thread);
    while (handed != NULL)
        usleep(1000);
    wipe();
    return 0;
}
