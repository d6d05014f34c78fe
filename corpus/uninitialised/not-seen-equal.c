// finds: nothing
// The branch goes the same way with whatever the block holds, but for one value in four thousand million.
#include "../corpus.h"

int main(void)
{
    int *state = malloc(sizeof *state);
    FIX(*state = 0;)
    int is_magic = *(int *)hide(state) == 0x4d5a9000;
    free(state);
    return is_magic;
}
