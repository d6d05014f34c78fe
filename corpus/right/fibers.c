// Eight fibers (makecontext, swapcontext), whose stacks are blocks of the heap
// and which allocate on them: stacks that the unwinder has never seen.
// asan: alien
#include "corpus.h"
#include <ucontext.h>

static ucontext_t main_context, fibers[8];
static int steps[8];

static void run(int me)
{
    for (int i = 0; i < 50; i++) {
        char *p = malloc((size_t)(me * 100 + i + 1));
        p[0] = (char)me;
        swapcontext(&fibers[me], &main_context);
        CHECK(p[0] == (char)me);
        free(p);
        steps[me]++;
    }
}

int main(void)
{
    char *stacks[8];
    for (int i = 0; i < 8; i++) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i] = malloc(64 << 10);
        fibers[i].uc_stack.ss_size = 64 << 10;
        fibers[i].uc_link = &main_context;
        makecontext(&fibers[i], (void (*)(void))run, 1, i);
    }
    for (int round = 0; round < 51; round++)
        for (int i = 0; i < 8; i++)
            swapcontext(&main_context, &fibers[i]);
    for (int i = 0; i < 8; i++) {
        CHECK(steps[i] == 50);
        free(stacks[i]);
    }
    return 0;
}
