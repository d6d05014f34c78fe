// finds: buffer-overflow
// words: 12-byte
// The C library allocated it; the program makes the text longer in place.
#include "corpus.h"

int main(void)
{
    char *name = strdup("picture.jpg");
    char *dot = strrchr(hide(name), '.');
    strcpy(dot, BUG(".jpeg") FIX(".gif"));
    free(hide(name));
    return 0;
}
