// leaks: definite 7 0 at A in main
// lsan: differs It makes them one byte long.
// malloc(0) gives a block, too.
#include "corpus.h"

int main(void)
{
    for (int i = 0; i < 7; i++) {
        void *p = malloc((size_t)hide(NULL)); // LEAK A
        CHECK(p != NULL);
        FIX(free(p);)
    }
    wipe();
    return 0;
}
