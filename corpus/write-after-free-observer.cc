// finds: write-after-free
// words: 32-byte
// A destructor signs off from a subject that is gone.
#include "corpus.h"
#include <memory>

struct Subject { long observers = 0, more[3]; };
struct Observer {
    Subject *subject;
    ~Observer() { --*const_cast<volatile long *>(hide(&subject->observers)); }
};

int main()
{
    FIX(auto subject = std::make_unique<Subject>();)
    auto observer = std::make_unique<Observer>();
    BUG(auto subject = std::make_unique<Subject>();)
    observer->subject = subject.get();
    return 0;
}
