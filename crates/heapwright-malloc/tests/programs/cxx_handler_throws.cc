// The new-handler throws exceptions of any type. They pass through operator new into the caller, but not
// out of the nothrow forms. Several threads do this, so that an unwinding in one would disturb the others.
#include "check.h"
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <vector>

static volatile size_t huge = (size_t)PTRDIFF_MAX - 100000;
static thread_local int cleaned, destroyed;

struct Cleanup {
    ~Cleanup() { cleaned++; }
};

struct Report {
    std::string text;
    explicit Report(const char *t) : text(t) {}
    Report(const Report &) = default;
    ~Report() { destroyed++; }
};

static thread_local int kind;

static void handler()
{
    Cleanup in_the_handler;
    switch (kind) {
    case 0: throw Report("out of memory, and here is a text that needs an allocation");
    case 1: throw 42;
    case 2: throw "a string";
    default: throw std::bad_alloc();
    }
}

__attribute__((noinline)) static void *allocate(int form)
{
    Cleanup in_the_caller;
    auto al = std::align_val_t(256);
    switch (form) {
    case 0: return ::operator new(huge);
    case 1: return ::operator new[](huge);
    case 2: return ::operator new(huge, al);
    case 3: return ::operator new[](huge, al);
    case 4: return ::operator new(huge, std::nothrow);
    case 5: return ::operator new[](huge, std::nothrow);
    case 6: return ::operator new(huge, al, std::nothrow);
    default: return ::operator new[](huge, al, std::nothrow);
    }
}

static void storm()
{
    for (int round = 0; round < 200; round++)
        for (kind = 0; kind < 4; kind++)
            for (int form = 0; form < 8; form++) {
                cleaned = destroyed = 0;
                int caught = -1;
                try {
                    void *p = allocate(form);
                    CHECK(p == nullptr);
                } catch (const Report &r) {
                    CHECK(r.text.size() > 30);
                    caught = 0;
                } catch (int n) {
                    CHECK(n == 42);
                    caught = 1;
                } catch (const char *text) {
                    CHECK(strcmp(text, "a string") == 0);
                    caught = 2;
                } catch (const std::bad_alloc &) {
                    caught = 3;
                }
                CHECK(caught == (form < 4 ? kind : -1));
                CHECK(cleaned == 2);
                CHECK(destroyed == (kind == 0 ? 1 : 0));
                CHECK(std::uncaught_exceptions() == 0);
                CHECK(std::current_exception() == nullptr);
            }

    // Inside a handler of another exception.
    kind = 1;
    try {
        throw std::string("the outer one");
    } catch (const std::string &outer) {
        CHECK(allocate(4) == nullptr);
        CHECK(outer == "the outer one");
        CHECK(std::current_exception() != nullptr);
        try {
            CHECK(allocate(0) == nullptr);
        } catch (int) {
        }
        CHECK(outer == "the outer one");
    }
}

int main()
{
    std::set_new_handler(handler);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(storm);
    for (auto &t : threads)
        t.join();
    return 0;
}
