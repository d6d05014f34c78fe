// finds: stdout
// A table grows, and what it has grown by is read.
#include "../corpus.h"

int main(void)
{
    char *table = calloc(16, 1);
    table = realloc(table, 64);
    FIX(memset(table + 16, 0, 48);)
    int used = 0;
    for (int i = 0; i < 64; i++)
        used += ((char *)hide(table))[i] != 0;
    printf("%d used\n", used);
    free(table);
    return 0;
}
