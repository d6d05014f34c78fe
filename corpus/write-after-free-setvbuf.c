// finds: write-after-free
// sizes: 1024 4096 400000
// words: %SIZE%-byte
// asan: blind to what the C library itself writes
// The buffer of a stream is freed before the stream is closed.
#include "corpus.h"

int main(void)
{
    char *buffer = malloc(SIZE);
    FILE *f = fopen("/dev/null", "w");
    setvbuf(f, buffer, _IOFBF, SIZE);
    BUG(free(hide(buffer));)
    fputs("some text for the stream", f);
    fclose(f);
    FIX(free(hide(buffer));)
    return 0;
}
