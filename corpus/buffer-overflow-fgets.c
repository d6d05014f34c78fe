// finds: buffer-overflow
// sizes: 24 3000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *text = malloc(9000), *line = malloc(SIZE);
    memset(text, 'l', 9000);
    FILE *f = fmemopen(text, 9000, "r");
    fgets(hide(line), (int)SIZE BUG(+ 1), f);
    fclose(f);
    free(hide(line));
    free(text);
    return 0;
}
