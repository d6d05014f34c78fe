// finds: buffer-overflow
// words: 1120-byte
// A matrix on the heap, with its rows and columns swapped at its last corner.
#include "corpus.h"

int main(void)
{
    enum { ROWS = 14, COLUMNS = 10 };
    double (*m)[COLUMNS] = malloc(sizeof(double[ROWS][COLUMNS]));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            ((volatile double *)hide(m[r]))[c] = 0;
    ((volatile double *)hide(m[ROWS - 1]))[COLUMNS FIX(- 1)] = 1;
    free(hide(m));
    return 0;
}
