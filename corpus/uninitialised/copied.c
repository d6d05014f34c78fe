// finds: stdout
// What nobody has written is copied twice before it is printed.
#include "../corpus.h"

int main(void)
{
    int *source = malloc(8 * sizeof *source);
    for (int i = 0; i < 8; i++)
        BUG(if (i != 5)) source[i] = i;
    int *copy = calloc(8, sizeof *copy);
    memcpy(copy, hide(source), 8 * sizeof *copy);
    int last[8];
    memcpy(last, hide(copy), sizeof last);
    for (int i = 0; i < 8; i++)
        printf("%d ", last[i]);
    puts("");
    free(source);
    free(copy);
    return 0;
}
