/* A double free whose stacks have a function of this file in each frame. */
#include <stdlib.h>

static char *volatile kept;

__attribute__((noinline)) char *make_it(void) { return malloc(40); }
__attribute__((noinline)) void end_it(char *block) { free(block); }

int main(void)
{
    kept = make_it();
    end_it(kept);
    end_it(kept);
    return 0;
}
