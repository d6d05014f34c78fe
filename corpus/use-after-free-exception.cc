// finds: use-after-free
// words: 40-byte
// needs: guard=all
// What was thrown points to what the unwinding has destroyed.
#include "corpus.h"
#include <memory>

struct Detail { char text[40] = "no such file"; };
struct Failure { const Detail *detail; };

NOINLINE void fails(std::unique_ptr<Detail> &keeper)
{
    auto detail = std::make_unique<Detail>();
    const Detail *raw = detail.get();
    FIX(keeper = std::move(detail);)
    throw Failure{ raw };
}

int main()
{
    std::unique_ptr<Detail> keeper;
    try {
        fails(keeper);
    } catch (const Failure &f) {
        PEEK(hide(f.detail->text));
    }
    return 0;
}
