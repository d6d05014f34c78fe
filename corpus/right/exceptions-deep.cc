// Exceptions through a thousand frames with owners in each, nested, rethrown,
// kept in exception_ptr and thrown in another thread.
// flags: -pthread
#include "corpus.h"
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

NOINLINE int deep(int n)
{
    std::string text(n % 100 + 20, 'd');
    auto owner = std::make_unique<int[]>(n + 1);
    if (n == 0)
        throw std::runtime_error(text);
    int below = deep(n - 1);
    return below + hide(owner.get())[0];
}

int main()
{
    for (int i = 0; i < 10; i++)
        try {
            try {
                deep(1000);
            } catch (...) {
                std::throw_with_nested(std::logic_error("outer"));
            }
        } catch (const std::logic_error &error) {
            try {
                std::rethrow_if_nested(error);
            } catch (const std::runtime_error &inner) {
                CHECK(std::string(inner.what()).size() == 20);
            }
        }
    std::exception_ptr kept;
    std::thread([&] { try { deep(50); } catch (...) { kept = std::current_exception(); } }).join();
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &) {
        puts("caught");
    }
    return 0;
}
