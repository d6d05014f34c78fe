// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A destructor, and the copy constructor that the compiler wrote.
#include "corpus.h"

struct Buffer {
    char *data;
    explicit Buffer(size_t n) : data(new char[n]) {}
    FIX(Buffer(const Buffer &) : data(new char[SIZE]) {})
    ~Buffer() { delete[] hide(data); }
};

int main()
{
    Buffer a(SIZE), b(a);
    POKE(a.data, 1);
    return 0;
}
