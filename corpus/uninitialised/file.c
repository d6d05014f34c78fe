// finds: file
// Only a file that it writes is different.
#include "../corpus.h"

int main(int count, char **words)
{
    CHECK(count > 1);
    short *samples = malloc(10 * sizeof *samples);
    for (int i = 0; i < 10; i++)
        BUG(if (i != 3)) samples[i] = (short)i;
    FILE *file = fopen(words[1], "wb");
    CHECK(file != NULL && fwrite(hide(samples), sizeof *samples, 10, file) == 10 && fclose(file) == 0);
    free(samples);
    return 0;
}
