// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// stack: load
// A catch block deletes what the guard deletes while the stack unwinds.
#include "corpus.h"
#include <stdexcept>

struct Guard {
    char *p;
    ~Guard() { delete[] hide(p); }
};

extern "C" NOINLINE void load()
{
    Guard guard = { new char[SIZE] };
    try {
        throw std::runtime_error("no such file");
    } catch (...) {
        BUG(delete[] hide(guard.p);)
        throw;
    }
}

int main()
{
    try {
        load();
    } catch (const std::runtime_error &) {
    }
    return 0;
}
