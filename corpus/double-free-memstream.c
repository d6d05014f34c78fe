// finds: double-free
// sizes: 24 3000
// The buffer of a memory stream is the caller's after fclose, once.
#include "corpus.h"

int main(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    for (size_t i = 0; i < SIZE; i++)
        fputc('x', f);
    fclose(f);
    CHECK(length == SIZE);
    free(hide(text));
    BUG(free(hide(text));)
    return 0;
}
