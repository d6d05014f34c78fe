// finds: buffer-overflow
// words: 40-byte
// A larger object is placed in a smaller one's room.
#include "corpus.h"
#include <new>

struct Small { char bytes[40]; };
struct Large { char bytes[40 BUG(+ 8)]; long last() volatile { return bytes[sizeof bytes - 1] = 1; } };

int main()
{
    void *room = ::operator new(sizeof(Small));
    const_cast<volatile Large *>(hide(new (room) Large))->last();
    ::operator delete(hide(static_cast<char *>(room)));
    return 0;
}
