// The new-handler is called again and again while there is no memory. It does each thing that the
// standard allows.
#include "check.h"
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>

static volatile size_t huge = (size_t)PTRDIFF_MAX - 100000;
static int calls;

static void gives_up_after_seven()
{
    if (++calls == 7)
        std::set_new_handler(nullptr);
}

static void throws_after_three()
{
    if (++calls == 3)
        throw std::bad_alloc();
}

static void installs_another()
{
    calls = 3;
    std::set_new_handler(gives_up_after_seven);
}

struct Derived : std::bad_alloc {
    const char *what() const noexcept override { return "derived"; }
};

static void throws_a_derived()
{
    calls++;
    throw Derived();
}

static rlimit before;
static void *reserve;

// The textbook's handler: it frees a reserve and raises a limit, and then the
// allocation succeeds.
static void frees_a_reserve()
{
    if (++calls == 3) {
        ::operator delete(reserve);
        setrlimit(RLIMIT_DATA, &before);
    }
}

template <typename F>
static int count(std::new_handler handler, F f)
{
    calls = 0;
    std::set_new_handler(handler);
    f();
    std::set_new_handler(nullptr);
    return calls;
}

template <typename F>
static bool throws(F f)
{
    try {
        void *p = f();
        OPAQUE(p);
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int main()
{
    auto al = std::align_val_t(4096);
    auto plain = [] { return ::operator new(huge); };
    auto array = [] { return ::operator new[](huge); };
    auto aligned = [&] { return ::operator new(huge, al); };
    auto aligned_array = [&] { return ::operator new[](huge, al); };

    CHECK(count(gives_up_after_seven, [&] { CHECK(throws(plain)); }) == 7);
    CHECK(count(gives_up_after_seven, [&] { CHECK(throws(array)); }) == 7);
    CHECK(count(gives_up_after_seven, [&] { CHECK(throws(aligned)); }) == 7);
    CHECK(count(gives_up_after_seven, [&] { CHECK(throws(aligned_array)); }) == 7);
    CHECK(count(throws_after_three, [&] { CHECK(throws(plain)); }) == 3);
    CHECK(count(throws_after_three, [&] { CHECK(throws(aligned_array)); }) == 3);
    CHECK(count(installs_another, [&] { CHECK(throws(plain)); }) == 7);

    // The nothrow forms call it too, and swallow its exceptions.
    auto none = [&](void *p) { CHECK(p == nullptr); };
    CHECK(count(gives_up_after_seven, [&] { none(::operator new(huge, std::nothrow)); }) == 7);
    CHECK(count(throws_after_three, [&] { none(::operator new(huge, std::nothrow)); }) == 3);
    CHECK(count(throws_after_three, [&] { none(::operator new[](huge, std::nothrow)); }) == 3);
    CHECK(count(throws_after_three, [&] { none(::operator new(huge, al, std::nothrow)); }) == 3);
    CHECK(count(throws_after_three, [&] { none(::operator new[](huge, al, std::nothrow)); }) == 3);

    // Its exception arrives with its own type.
    count(throws_a_derived, [&] {
        try {
            OPAQUE(huge);
            void *p = ::operator new(huge);
            OPAQUE(p);
            CHECK(false);
        } catch (const Derived &e) {
            CHECK(strcmp(e.what(), "derived") == 0);
        }
    });

    // Memory that comes back while the handler runs is used.
    reserve = ::operator new(1 << 20);
    getrlimit(RLIMIT_DATA, &before);
    rlimit tight = before;
    tight.rlim_cur = (rlim_t)200 << 20;
    void *p = nullptr;
    setrlimit(RLIMIT_DATA, &tight);
    // Emulators do not keep limits.
    void *probe = mmap(nullptr, (size_t)600 << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) {
        CHECK(count(frees_a_reserve, [&] { p = ::operator new((size_t)600 << 20); }) == 3);
        CHECK(p != nullptr);
        static_cast<char *>(p)[(size_t)599 << 20] = 1;
        ::operator delete(p);
    } else {
        puts("skipped: limits are not kept");
    }
    return 0;
}
