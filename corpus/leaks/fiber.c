// leaks: reachable 1 SIZE at A in work
// sizes: 24 3000
// The only pointer is on the stack of a coroutine that waits to be resumed; that stack is a block, too.
#include "corpus.h"
#include <ucontext.h>

ucontext_t caller, fiber;
char *stack;

static void work(void)
{
    char *volatile held = malloc(SIZE); // LEAK A
    POKE(held, 1);
    FIX(free(held);)
    swapcontext(&fiber, &caller);
}

int main(void)
{
    stack = malloc(65536);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = 65536;
    fiber.uc_link = &caller;
    makecontext(&fiber, work, 0);
    swapcontext(&caller, &fiber);
    FIX(free(stack);)
    return 0;
}
