// leaks: definite 1 SIZE at A in main with 50 50*40
// leaks: indirect 50 50*40 at B in main
// sizes: 400000 40000000
// valgrind: differs Its blocks lie at low addresses: small numbers look like pointers into one of 40 MB.
// A large table of pointers is lost with all that it leads to, at its start, at its end and in between.
#include "corpus.h"

int main(void)
{
    char **table = calloc(1, SIZE); // LEAK A
    size_t n = SIZE / sizeof *table;
    for (size_t i = 0; i < 50; i++)
        table[i * (n - 1) / 49] = calloc(1, 40); // LEAK B
    FIX(for (size_t i = 0; i < 50; i++) free(table[i * (n - 1) / 49]); free(table);)
    table = hide(NULL);
    wipe();
    return 0;
}
