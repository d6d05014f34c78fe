// finds: invalid-free
// A table of pointers whose last was never set: the block was filled with a
// pattern by its last user.
#include "corpus.h"

int main(void)
{
    char **table = malloc(8 * sizeof *table);
    memset(hide(table), 0x5a, 8 * sizeof *table);
    FIX(table[7] = NULL;)
    for (int i = 0; i < 7; i++)
        table[i] = malloc(24);
    for (int i = 0; i < 8; i++)
        free(hide(table[i]));
    free(table);
    return 0;
}
