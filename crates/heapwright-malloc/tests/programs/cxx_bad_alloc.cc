// Without a new-handler the throwing forms throw std::bad_alloc, through frames with objects to
// destroy. The other forms return null.
#include "check.h"
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static volatile size_t huge = (size_t)PTRDIFF_MAX - 100000;
static int cleaned;

struct Cleanup {
    std::string text = "a string that is too long to be stored in place";
    ~Cleanup() { cleaned++; }
};

template <typename F>
__attribute__((noinline)) static void deep(int levels, F f)
{
    Cleanup here;
    if (levels > 0)
        deep(levels - 1, f);
    else
        f();
    OPAQUE(levels);
}

template <typename F>
static void throws(F f)
{
    cleaned = 0;
    bool caught = false;
    try {
        deep(10, f);
    } catch (const std::bad_alloc &e) {
        caught = true;
        CHECK(strcmp(e.what(), "std::bad_alloc") == 0);
        CHECK(std::uncaught_exceptions() == 0);
    }
    CHECK(caught);
    CHECK(cleaned == 11);
    CHECK(std::uncaught_exceptions() == 0);
}

int main()
{
    auto al = std::align_val_t(64);
    auto keep = [](void *p) { OPAQUE(p); };
    for (int i = 0; i < 50; i++) {
        throws([&] { keep(::operator new(huge)); });
        throws([&] { keep(::operator new[](huge)); });
        throws([&] { keep(::operator new(huge, al)); });
        throws([&] { keep(::operator new[](huge, al)); });
        throws([&] { keep(::operator new(SIZE_MAX)); });
        throws([&] { keep(new char[huge]); });
        throws([&] {
            std::vector<char> v;
            v.reserve(huge);
        });
        CHECK(::operator new(huge, std::nothrow) == nullptr);
        CHECK(::operator new[](huge, std::nothrow) == nullptr);
        CHECK(::operator new(huge, al, std::nothrow) == nullptr);
        CHECK(::operator new[](huge, al, std::nothrow) == nullptr);
        CHECK(new (std::nothrow) char[huge] == nullptr);
        CHECK(std::uncaught_exceptions() == 0);
    }

    // An invalid alignment.
    throws([&] { keep(::operator new(16, std::align_val_t(24))); });
    throws([&] { keep(::operator new(16, std::align_val_t(0))); });
    CHECK(::operator new(16, std::align_val_t(24), std::nothrow) == nullptr);

    // A nothrow form in a noexcept function: no exception leaves the form.
    auto quiet = []() noexcept { return ::operator new(huge, std::nothrow); };
    CHECK(quiet() == nullptr);
    return 0;
}
