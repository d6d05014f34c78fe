// finds: invalid-free
// words: invalid-free-unique-ptr-global
// An owner of something that nobody owns.
#include "corpus.h"
#include <memory>

struct Config { char bytes[40]; };
static Config fallback;

int main()
{
    std::unique_ptr<Config> config(hide(BUG(&fallback) FIX(new Config(fallback))));
    return 0;
}
