// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A size that is no multiple of its alignment: the slack is large.
#include "corpus.h"

int main(void)
{
    void *p = NULL;
    CHECK(posix_memalign(&p, 256, SIZE) == 0);
    memset(hide(p), 'a', SIZE);
    BUG(POKE((char *)p + SIZE, 1);)
    free(hide(p));
    return 0;
}
