// Every form of operator new and delete, called by name.
#include "check.h"
#include <malloc.h>
#include <new>

static void test(void *p, size_t size, size_t alignment)
{
    CHECK(p != nullptr);
    CHECK(is_aligned(p, alignment));
    CHECK(malloc_usable_size(p) >= size);
    memset(p, 0xAB, size);
}

int main()
{
    for (size_t size = 0; size <= 300000; size += 1 + size / 6) {
        void *p;
        p = ::operator new(size), test(p, size, 16), ::operator delete(p);
        p = ::operator new(size), test(p, size, 16), ::operator delete(p, size);
        p = ::operator new(size), test(p, size, 16), ::operator delete(p, std::nothrow);
        p = ::operator new(size, std::nothrow), test(p, size, 16), ::operator delete(p);
        p = ::operator new[](size), test(p, size, 16), ::operator delete[](p);
        p = ::operator new[](size), test(p, size, 16), ::operator delete[](p, size);
        p = ::operator new[](size), test(p, size, 16), ::operator delete[](p, std::nothrow);
        p = ::operator new[](size, std::nothrow), test(p, size, 16), ::operator delete[](p);
        for (size_t a = 1; a <= 1 << 16; a *= 4) {
            auto al = std::align_val_t(a);
            p = ::operator new(size, al), test(p, size, a), ::operator delete(p, al);
            p = ::operator new(size, al), test(p, size, a), ::operator delete(p, size, al);
            p = ::operator new(size, al), test(p, size, a), ::operator delete(p, al, std::nothrow);
            p = ::operator new(size, al, std::nothrow), test(p, size, a), ::operator delete(p, al);
            p = ::operator new[](size, al), test(p, size, a), ::operator delete[](p, al);
            p = ::operator new[](size, al), test(p, size, a), ::operator delete[](p, size, al);
            p = ::operator new[](size, al), test(p, size, a);
            ::operator delete[](p, al, std::nothrow);
            p = ::operator new[](size, al, std::nothrow), test(p, size, a);
            ::operator delete[](p, al);
        }
    }

    // Blocks of size zero are blocks.
    void *a = ::operator new(0), *b = ::operator new(0), *c = ::operator new[](0);
    CHECK(a && b && c && a != b && b != c && a != c);
    ::operator delete(a);
    ::operator delete(b);
    ::operator delete[](c);

    // Deleting nothing does nothing.
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, 8);
    ::operator delete[](nullptr, 8);
    ::operator delete(nullptr, std::align_val_t(64));
    ::operator delete[](nullptr, std::align_val_t(64));
    ::operator delete(nullptr, 64, std::align_val_t(64));
    ::operator delete[](nullptr, 64, std::align_val_t(64));
    ::operator delete(nullptr, std::nothrow);
    ::operator delete[](nullptr, std::nothrow);
    ::operator delete(nullptr, std::align_val_t(64), std::nothrow);
    ::operator delete[](nullptr, std::align_val_t(64), std::nothrow);
    return 0;
}
