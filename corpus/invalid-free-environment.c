// finds: invalid-free
// words: stack
// What getenv returns lies with the arguments, above the stack.
#include "corpus.h"

int main(int argc, char **argv)
{
    (void)argc;
    char *value = argv[0];
    FIX(value = strdup(value);)
    free(hide(value));
    return 0;
}
