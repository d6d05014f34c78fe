// finds: invalid-free
// words: libc
// What localtime and its like return is the C library's.
#include "corpus.h"
#include <time.h>

int main(void)
{
    time_t now = 0;
    struct tm *t = gmtime(&now);
    CHECK(t->tm_year == 70);
    BUG(free(hide(t));)
    return 0;
}
