// finds: stdout
// A number is printed that nobody has computed.
#include "../corpus.h"

int main(void)
{
    long *sums = malloc(4 * sizeof *sums);
    for (int i = 0; i < 3 FIX(+1); i++)
        sums[i] = i;
    for (int i = 0; i < 4; i++)
        printf("sum %d: %ld\n", i, ((long *)hide(sums))[i]);
    free(sums);
    return 0;
}
