// finds: buffer-overflow
// words: 8-byte
// %s has no bound.
#include "corpus.h"

int main(void)
{
    char *word = malloc(8);
    CHECK(sscanf("user=administrator", FIX("user=%7s") BUG("user=%s"), (char *)hide(word)) == 1);
    free(hide(word));
    return 0;
}
