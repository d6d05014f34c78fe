// leaks: possible 1 SIZE at A in main
// sizes: 3000 400000
// lsan: differs To it a pointer to any byte of a block keeps the block.
// What is left is a pointer deep into the block: a cursor, or just a number.
#include "corpus.h"

char *cursor;

int main(void)
{
    char *p = calloc(1, SIZE); // LEAK A
    cursor = p + 1500;
    FIX(free(p); cursor = NULL;)
    p = hide(NULL);
    wipe();
    return 0;
}
