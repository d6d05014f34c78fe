// finds: buffer-overflow
// words: 23-byte
// Escaping makes a text longer: its marks were counted, its NUL was not.
#include "corpus.h"

int main(void)
{
    const char *text = "a \"quoted\" te\n\"xt\"";
    size_t n = strlen(text), marks = 5;
    char *out = malloc(n + marks FIX(+ 1)), *o = out;
    for (const char *t = text; *t; t++) {
        if (*t == '"' || *t == '\n')
            POKE(o++, '\\');
        POKE(o++, *t);
    }
    POKE(o, 0);
    free(hide(out));
    return 0;
}
