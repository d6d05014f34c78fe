// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// As local-at-return.c, after the destructors of iostream have used the stack at exit.
#include "corpus.h"
#include <iostream>

int main()
{
    char *volatile held[12];
    held[0] = new char[SIZE]; // LEAK A
    POKE(held[0], 1);
    FIX(delete[] held[0];)
    return 0;
}
