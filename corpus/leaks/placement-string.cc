// leaks: definite 1 SIZE+1 at A in use
// sizes: 24 3000 400000
// A string is made in given storage, whose end does not end the string.
#include "corpus.h"
#include <new>
#include <string>

NOINLINE void use()
{
    alignas(std::string) char storage[sizeof(std::string)];
    std::string *s = hide(new (storage) std::string(SIZE, 'x')); // LEAK A
    PEEK(s->data());
    FIX(s->~basic_string();)
}

int main()
{
    use();
    wipe();
    return 0;
}
