// finds: allocator-mismatch
// words: 40-byte
// A C library's object in an owner that calls delete.
#include "corpus.h"
#include <memory>

struct Handle { char bytes[40]; };
struct Free { void operator()(Handle *h) const { free(h); } };

int main()
{
    Handle *h = static_cast<Handle *>(malloc(sizeof *h));
    std::unique_ptr<Handle FIX(, Free)> owner(hide(h));
    return 0;
}
