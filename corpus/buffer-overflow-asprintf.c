// finds: buffer-overflow
// words: 9-byte
#include "corpus.h"

int main(void)
{
    char *text = NULL;
    int n = asprintf(&text, "item-%03d", 42);
    CHECK(n == 8);
    text = hide(realloc(text, 9));
    text[n] = '\n';
    BUG(((volatile char *)text)[n + 1] = 0;)
    free(hide(text));
    return 0;
}
