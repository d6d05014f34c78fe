// leaks: definite 6 6*40 at A in main
// leaks: reachable 4 4*40 at A in main
// A table of pointers is made smaller; what its last entries led to is lost.
#include "corpus.h"

char **table;

int main(void)
{
    table = calloc(10, sizeof *table);
    for (int i = 0; i < 10; i++)
        table[i] = calloc(1, 40); // LEAK A
    for (int i = 4; i < 10; i++)
        FIX(free(table[i]))
        ;
    table = realloc(table, 4 * sizeof *table);
    wipe();
    return 0;
}
