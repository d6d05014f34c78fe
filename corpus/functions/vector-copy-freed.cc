// finds: use-after-free
// sizes: 24 3000 400000
// words: by memcpy of
// needs: bounds
// A pointer to a vector's elements is read from after the vector has grown.
#include "../corpus.h"
#include <vector>

int main(void)
{
    static char other[1 << 20];
    std::vector<char> all(SIZE, 'a');
    char *p = all.data();
    BUG(all.reserve(SIZE * 4);)
    memcpy(other, hide(p), SIZE);
    return 0;
}
