// A plug-in in C++, opened by a program in C that has no C++ runtime of its own.
#include "check.h"
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static volatile size_t huge = (size_t)PTRDIFF_MAX - 100000;
static int calls;

static void handler()
{
    if (++calls == 5)
        throw std::runtime_error("the plug-in's own exception");
}

extern "C" int plugin_run(void)
{
    std::vector<std::string> strings(1000, std::string(50, 's'));
    CHECK(strings[999].size() == 50);
    int caught = 0;
    for (int i = 0; i < 20; i++) {
        try {
            void *p = ::operator new(huge);
            OPAQUE(p);
        } catch (const std::bad_alloc &) {
            caught++;
        }
        CHECK(::operator new(huge, std::nothrow) == nullptr);
    }
    CHECK(caught == 20);
    std::set_new_handler(handler);
    try {
        void *p = ::operator new[](huge);
        OPAQUE(p);
    } catch (const std::runtime_error &e) {
        caught++;
    }
    CHECK(calls == 5);
    calls = 0;
    CHECK(::operator new(huge, std::nothrow) == nullptr);
    CHECK(calls == 5);
    std::set_new_handler(nullptr);
    CHECK(caught == 21);
    return 0;
}
