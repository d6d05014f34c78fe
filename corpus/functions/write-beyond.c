// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by write of
// needs: bounds
// One byte more than there is goes out.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    FILE *null = fopen("/dev/null", "w");
    if (write(fileno(null), hide(p), n) < 0)
        return 1;
    fclose(null);
    free(hide(p));
    return 0;
}
