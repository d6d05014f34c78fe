// finds: alignment-mismatch
// words: 128-byte
// A plain object is deleted as an over-aligned type.
#include "corpus.h"

struct Plain { char bytes[128]; };
struct alignas(128) Line { char bytes[128]; };

int main()
{
    char *p = reinterpret_cast<char *>(new Plain);
    delete reinterpret_cast<BUG(Line) FIX(Plain) *>(hide(p));
    return 0;
}
