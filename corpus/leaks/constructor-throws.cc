// leaks: definite 1 SIZE at A in session
// sizes: 24 3000
// A constructor allocates and then throws: the object goes, its destructor does not run.
#include "corpus.h"
#include <memory>

struct session {
    char *buffer;
    FIX(std::unique_ptr<char[]> owner;)
    NOINLINE session()
    {
        buffer = new char[SIZE]; // LEAK A
        POKE(buffer, 1);
        FIX(owner.reset(buffer);)
        throw 1;
    }
    ~session() { BUG(delete[] buffer;) }
};

int main()
{
    try {
        session *s = hide(new session);
        delete s;
    } catch (int) {
    }
    wipe();
    return 0;
}
