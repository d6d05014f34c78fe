// A program that replaces only the two plain forms of operator new and operator delete. The
// standard says that all other forms call these.
#include "check.h"
#include <new>
#include <string>
#include <vector>

// A header before each block. If other code than our operator frees such a block, it frees an
// address inside a block of malloc.
struct Header {
    size_t magic, size;
};
static const size_t MAGIC = 0x6C656D2D6E776F21;
static size_t made, gone;

void *operator new(size_t size)
{
    if (size > (size_t)1 << 40)
        throw std::bad_alloc();
    Header *h = static_cast<Header *>(malloc(size + sizeof(Header)));
    if (!h)
        throw std::bad_alloc();
    *h = { MAGIC, size };
    made++;
    return h + 1;
}

void operator delete(void *p) noexcept
{
    if (!p)
        return;
    Header *h = static_cast<Header *>(p) - 1;
    CHECK(h->magic == MAGIC);
    h->magic = 0;
    gone++;
    free(h);
}

struct Polymorphic {
    virtual ~Polymorphic() {}
    int x[10];
};
struct Derived : Polymorphic {
    int y[100];
};

int main()
{
    size_t rounds = 0;
    auto balanced = [&](size_t news) {
        CHECK(made == rounds + news);
        CHECK(gone == made);
        rounds = made;
    };
    rounds = made;
    CHECK(gone == made);
    for (size_t size = 1; size < 100000; size *= 3) {
        ::operator delete(::operator new(size));
        ::operator delete(::operator new(size), size);
        ::operator delete(::operator new(size), std::nothrow);
        ::operator delete(::operator new(size, std::nothrow));
        ::operator delete[](::operator new[](size));
        ::operator delete[](::operator new[](size), size);
        ::operator delete[](::operator new[](size), std::nothrow);
        ::operator delete[](::operator new[](size, std::nothrow));
        balanced(8);
    }
    Polymorphic *p = new Derived;
    OPAQUE(p);
    delete p;
    balanced(1);
    auto *array = new std::string[20];
    OPAQUE(array);
    delete[] array;
    balanced(1);
    {
        std::vector<int> v(1000);
        CHECK(made == rounds + 1);
    }
    balanced(1);

    // The nothrow forms catch the exceptions of the program's own operator.
    CHECK(::operator new(SIZE_MAX / 2, std::nothrow) == nullptr);
    CHECK(::operator new[](SIZE_MAX / 2, std::nothrow) == nullptr);
    return 0;
}
