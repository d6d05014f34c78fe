// Every form of new with the delete that belongs to it.
// asan: alien
#include "corpus.h"
#include <memory>
#include <new>

struct Small { char bytes[24]; };
struct Counted { long id; ~Counted() { hide(this); } };
struct alignas(256) Wide { char bytes[512]; ~Wide() { hide(this); } };
struct Base { virtual ~Base() {} char bytes[8]; };
struct Derived : Small, Base { char more[100]; };
struct Throws { Throws() { throw 1; } };

template <class T> void each()
{
    delete hide(new T);
    delete[] hide(new T[0]);
    delete[] hide(new T[7]);
    delete hide(new (std::nothrow) T);
    delete[] hide(new (std::nothrow) T[3]);
    std::allocator<T> allocator;
    T *p = allocator.allocate(5);
    allocator.deallocate(hide(p), 5);
}

int main()
{
    each<char>(), each<Small>(), each<Counted>(), each<Wide>(), each<Derived>();
    delete static_cast<Base *>(hide(new Derived));
    for (int i = 0; i < 100; i++)
        try {
            delete new Throws;
        } catch (int) {
        }
    try {
        volatile size_t huge = SIZE_MAX / 4;
        hide(new char[huge]);
        return 1;
    } catch (const std::bad_alloc &) {
    }
    char *raw = static_cast<char *>(::operator new(100));
    ::operator delete(raw);
    raw = static_cast<char *>(::operator new(100, std::align_val_t(64)));
    ::operator delete(raw, std::align_val_t(64));
    return 0;
}
