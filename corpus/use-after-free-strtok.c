// finds: use-after-free
// sizes: 32 3008
// words: %SIZE%-byte
// needs: guard=all
// asan: blind to this function of the C library
// strtok remembers where it was, in a line that is gone.
#include "corpus.h"

int main(void)
{
    char *line = malloc(SIZE), *rest = NULL;
    memset(line, 'a', SIZE);
    line[5] = ' ';
    line[SIZE - 1] = 0;
    CHECK(strtok_r(line, " ", &rest) == line);
    BUG(free(hide(line));)
    strtok_r(NULL, " ", &rest);
    FIX(free(hide(line));)
    return 0;
}
