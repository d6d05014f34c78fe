// The debug heap learns which form was called, with which size and alignment.
#include "observe.h"
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <stdexcept>
#include <thread>

extern "C" void free_sized(void *, size_t) __attribute__((weak));
extern "C" void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static thread_local seen events[64];
static thread_local size_t count;
static thread_local bool watching;

static int look(const seen *event)
{
    if (event->what == 'e') {
        if (write(1, "end\n", 4) != 4)
            _exit(4);
    } else if (watching && count < 64) {
        events[count++] = *event;
    }
    return NOT_OURS;
}

static const size_t NONE = (size_t)-1;

static void is(char what, unsigned origin, size_t size, size_t align)
{
    CHECK(count == 1);
    CHECK(events[0].what == what);
    CHECK(events[0].origin == origin);
    CHECK(events[0].size == size);
    CHECK(events[0].align == align);
    count = 0;
}

static void *made(void *p, unsigned origin, size_t size, size_t align)
{
    CHECK(p != nullptr && is_aligned(p, align));
    CHECK(!events[0].zero);
    is('r', origin, size, align);
    return p;
}

static int helped;
static void helper()
{
    if (++helped == 3)
        throw std::runtime_error("no more");
}

static void cxx(size_t n)
{
    std::align_val_t a { 64 };
    void *p = made(::operator new(n), NEW, n, 1);
    ::operator delete(p);
    is('f', NEW, NONE, NONE);
    p = made(::operator new(n, std::nothrow), NEW, n, 1);
    ::operator delete(p, n);
    is('f', NEW, n, NONE);
    p = made(::operator new(n), NEW, n, 1);
    ::operator delete(p, std::nothrow);
    is('f', NEW, NONE, NONE);

    p = made(::operator new[](n), NEW_ARRAY, n, 1);
    ::operator delete[](p);
    is('f', NEW_ARRAY, NONE, NONE);
    p = made(::operator new[](n, std::nothrow), NEW_ARRAY, n, 1);
    ::operator delete[](p, n);
    is('f', NEW_ARRAY, n, NONE);
    p = made(::operator new[](n), NEW_ARRAY, n, 1);
    ::operator delete[](p, std::nothrow);
    is('f', NEW_ARRAY, NONE, NONE);

    p = made(::operator new(n, a), NEW, n, 64);
    ::operator delete(p, a);
    is('f', NEW, NONE, 64);
    p = made(::operator new(n, a, std::nothrow), NEW, n, 64);
    ::operator delete(p, n, a);
    is('f', NEW, n, 64);
    p = made(::operator new(n, a), NEW, n, 64);
    ::operator delete(p, a, std::nothrow);
    is('f', NEW, NONE, 64);

    p = made(::operator new[](n, a), NEW_ARRAY, n, 64);
    ::operator delete[](p, a);
    is('f', NEW_ARRAY, NONE, 64);
    p = made(::operator new[](n, a, std::nothrow), NEW_ARRAY, n, 64);
    ::operator delete[](p, n, a);
    is('f', NEW_ARRAY, n, 64);
    p = made(::operator new[](n, a), NEW_ARRAY, n, 64);
    ::operator delete[](p, a, std::nothrow);
    is('f', NEW_ARRAY, NONE, 64);

    // Nothing is not a block.
    ::operator delete(nullptr, n);
    ::operator delete[](nullptr);
    ::operator delete[](nullptr, n, a);
    CHECK(count == 0);
}

static void c(size_t n)
{
    void *p = made(malloc(n), MALLOC, n, 1);
    free(p);
    is('f', MALLOC, NONE, NONE);
    p = calloc(1, n);
    CHECK(events[0].zero && p);
    is('r', MALLOC, n, 1);
    p = realloc(p, n + 100);
    CHECK(events[0].what == 'a' && events[0].other == n + 100 && events[0].size == NONE);
    count = 0;
    free_sized(p, n + 100);
    is('f', MALLOC, n + 100, NONE);
    p = made(realloc(nullptr, n), MALLOC, n, 1);
    free(p);
    is('f', MALLOC, NONE, NONE);

    CHECK(posix_memalign(&p, 8, n) == 0);
    made(p, POSIX_MEMALIGN, n, 8);
    free(p);
    is('f', MALLOC, NONE, NONE);
    p = made(aligned_alloc(256, n), ALIGNED, n, 256);
    free_aligned_sized(p, 256, n);
    is('f', ALIGNED, n, 256);
    free(made(memalign(32, n), ALIGNED, n, 32));
    is('f', MALLOC, NONE, NONE);
}

static volatile size_t huge = (size_t)PTRDIFF_MAX - 100000;

// As many attempts as the handler allows. Each attempt reports its form.
template <typename F> static void failing(unsigned origin, size_t align, F form)
{
    helped = 0;
    std::set_new_handler(helper);
    bool caught = false;
    watching = true;
    try {
        void *p = form();
        OPAQUE(p);
    } catch (const std::runtime_error &) {
        caught = true;
    }
    watching = false;
    std::set_new_handler(nullptr);
    CHECK(caught && helped == 3);
    size_t attempts = 0;
    for (size_t i = 0; i < count; i++)
        if (events[i].what == 'r' && events[i].size == huge) {
            CHECK(events[i].origin == origin && events[i].align == align);
            attempts++;
        }
    CHECK(attempts == 3);
    count = 0;

    caught = false;
    try {
        void *p = form();
        OPAQUE(p);
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    CHECK(caught);
    count = 0;
}

static void all()
{
    std::align_val_t a { 128 };
    for (size_t n : { (size_t)1, (size_t)100, (size_t)3000, (size_t)100000 }) {
        watching = true;
        cxx(n);
        c(n);
        watching = false;
    }
    failing(NEW, 1, [] { return ::operator new(huge); });
    failing(NEW_ARRAY, 1, [] { return ::operator new[](huge); });
    failing(NEW, 128, [&] { return ::operator new(huge, a); });
    failing(NEW_ARRAY, 128, [&] { return ::operator new[](huge, a); });
    CHECK(::operator new[](huge, std::nothrow) == nullptr);
    CHECK(::operator new[](huge, a, std::nothrow) == nullptr);
    count = 0;

    void *library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(library != nullptr);
    watching = true;
    CHECK(dlclose(library) == 0);
    watching = false;
    size_t forgotten = 0;
    for (size_t i = 0; i < count; i++)
        forgotten += events[i].what == 'd';
    CHECK(forgotten == 1);
}

int main(int argc, char **argv)
{
    CHECK(hw_observe);
    hw_observe(look);
    // The main thread already has a cache, which would serve it.
    std::thread(all).join();
    if (argc > 1 && *argv[1] == '_')
        _exit(0);
    if (argc > 1 && *argv[1] == 'q')
        quick_exit(0);
    return 0;
}
