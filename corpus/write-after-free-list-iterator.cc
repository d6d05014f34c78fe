// finds: write-after-free
// words: 24-byte
// An iterator of an erased element.
#include "corpus.h"
#include <list>

int main()
{
    std::list<long> list = { 1, 2, 3 };
    auto at = list.begin();
    long *value = hide(&*at);
    FIX(value = hide(&list.back());)
    list.erase(at);
    *const_cast<volatile long *>(value) = 42;
    return 0;
}
