// leaks: reachable 1 SIZE at A in main
// sizes: 24 3000 400000
// valgrind: differs It has the C library free the table of the environment before it looks.
// A text given to putenv is part of the environment.
#include "corpus.h"

int main(void)
{
    char *text = malloc(SIZE); // LEAK A
    strcpy(text, "CORPUS=");
    memset(text + 7, 'x', SIZE - 8);
    text[SIZE - 1] = 0;
    putenv(text);
    FIX(unsetenv("CORPUS"); free(text);)
    text = hide(NULL);
    wipe();
    return 0;
}
