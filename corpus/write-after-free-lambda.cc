// finds: write-after-free
// words: 40-byte
// A lambda captured a pointer to what is gone when it is called.
#include "corpus.h"
#include <functional>
#include <memory>

struct Session { long hits = 0; char bytes[32]; };

int main()
{
    auto session = std::make_unique<Session>();
    Session *raw = session.get();
    std::function<void()> hit = [raw] { const_cast<volatile Session *>(hide(raw))->hits = 1; };
    BUG(session.reset();)
    hit();
    return 0;
}
