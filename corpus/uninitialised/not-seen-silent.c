// finds: nothing
// What is read decides a branch, of which nothing comes out of the program.
#include "../corpus.h"

int main(void)
{
    int *level = malloc(sizeof *level), notes = 0;
    FIX(*level = 0;)
    if (*(int *)hide(level))
        *(volatile int *)&notes = 1;
    free(level);
    return 0;
}
