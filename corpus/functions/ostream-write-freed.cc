// finds: use-after-free
// sizes: 24 3000 400000
// words: by memcpy of
// needs: bounds
// A stream is given a buffer that was deleted.
#include "../corpus.h"
#include <sstream>

int main(void)
{
    char *p = new char[SIZE];
    memset(p, 'a', SIZE);
    std::ostringstream out;
    BUG(delete[] hide(p);)
    out.write(hide(p), SIZE);
    FIX(delete[] hide(p);)
    if (out.str().size() != SIZE)
        return 1;
    return 0;
}
