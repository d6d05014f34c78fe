// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Room for the text, and none for the NUL at its end: one zero byte too far.
#include "corpus.h"

int main(void)
{
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    char *copy = malloc(strlen(hide(text)) FIX(+ 1));
    strcpy(hide(copy), text);
    free(hide(copy));
    free(text);
    return 0;
}
