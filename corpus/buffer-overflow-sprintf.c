// finds: buffer-overflow
// words: 10-byte
// A number with one digit more than was thought: INT_MIN has eleven.
#include "corpus.h"

int main(void)
{
    char *text = malloc(10 FIX(+ 2));
    sprintf(hide(text), "%d", *(int *)hide(&(int){ -1147483648 }));
    free(hide(text));
    return 0;
}
