// finds: buffer-overflow
// words: 24-byte
#include "corpus.h"

int main(void)
{
    char *path = malloc(24);
    strcpy(hide(path), "/var/lib/heap");
    strcat(hide(path), "/wright.db" BUG("x"));
    free(hide(path));
    return 0;
}
