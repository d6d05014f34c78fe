// leaks: definite 1 SIZE at A in prepare
// sizes: 24 3000 400000
// Lost before main.
#include "corpus.h"

char *settings;

__attribute__((constructor(1000))) static void prepare(int argc, char **argv)
{
    corpus_begin(argc, argv);
    settings = malloc(SIZE); // LEAK A
    POKE(settings, 1);
}

int main(void)
{
    FIX(free(settings);)
    settings = NULL;
    return 0;
}
