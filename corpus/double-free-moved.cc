// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// A move constructor that leaves the pointer behind.
#include "corpus.h"
#include <utility>

struct Buffer {
    char *data;
    explicit Buffer(size_t n) : data(new char[n]) {}
    Buffer(Buffer &&from) : data(from.data) { FIX(from.data = nullptr;) }
    ~Buffer() { delete[] hide(data); }
};

int main()
{
    Buffer a(SIZE), b(std::move(a));
    return 0;
}
