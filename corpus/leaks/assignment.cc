// leaks: definite 1 SIZE at A in text
// sizes: 24 3000 400000
// An assignment operator that forgets what it had.
#include "corpus.h"

struct text {
    char *bytes;
    NOINLINE text() { POKE(bytes = new char[SIZE], 1); } // LEAK A
    text(text &&) = delete;
    text &operator=(text &&other)
    {
        FIX(delete[] bytes;)
        bytes = other.bytes;
        other.bytes = nullptr;
        return *this;
    }
    ~text() { delete[] hide(bytes); }
};

NOINLINE void use()
{
    text a, b;
    a = static_cast<text &&>(b);
}

int main()
{
    use();
    wipe();
    return 0;
}
