// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// Two rows of a matrix are one.
#include "corpus.h"

int main(void)
{
    char **rows = malloc(8 * sizeof *rows);
    for (int i = 0; i < 8; i++)
        rows[i] = malloc(SIZE);
    BUG(free(rows[5]); rows[5] = rows[4];)
    for (int i = 0; i < 8; i++)
        free(hide(rows[i]));
    free(rows);
    return 0;
}
