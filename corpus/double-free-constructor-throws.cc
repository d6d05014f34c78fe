// finds: double-free
// words: 64-byte
// A constructor that throws deletes its member; the member's owner does, too.
#include "corpus.h"
#include <memory>

struct Member { char bytes[64]; };
struct Whole {
    std::unique_ptr<Member> member;
    Whole() : member(new Member)
    {
        BUG(delete hide(member.get());)
        throw 1;
    }
};

int main()
{
    try {
        Whole whole;
    } catch (int) {
    }
    return 0;
}
