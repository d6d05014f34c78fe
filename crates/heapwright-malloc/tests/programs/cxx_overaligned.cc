// Types that are aligned more than malloc aligns: the compiler calls the aligned forms.
#include "check.h"
#include <memory>
#include <new>
#include <vector>

template <size_t A>
struct alignas(A) Aligned {
    unsigned char bytes[A + 1];
    explicit Aligned(size_t n = 0)
    {
        CHECK(is_aligned(this, A));
        paint(bytes, sizeof bytes, n);
    }
    ~Aligned() { CHECK(is_aligned(this, A)); }
};

// With a destructor, so that new[] stores a count before the array.
template <size_t A>
static void test()
{
    for (size_t n = 0; n < 40; n++) {
        auto *one = new Aligned<A>(n);
        CHECK(is_painted(one->bytes, sizeof one->bytes, n));
        auto *many = new Aligned<A>[n];
        for (size_t i = 0; i < n; i++)
            CHECK(is_painted(many[i].bytes, sizeof many[i].bytes, 0));
        auto *quiet = new (std::nothrow) Aligned<A>(n);
        CHECK(quiet != nullptr);
        auto shared = std::make_shared<Aligned<A>>(n);
        std::vector<Aligned<A>> vector;
        for (size_t i = 0; i < n; i++)
            vector.emplace_back(i);
        for (size_t i = 0; i < n; i++)
            CHECK(is_painted(vector[i].bytes, sizeof vector[i].bytes, i));
        delete quiet;
        delete[] many;
        delete one;
    }
}

int main()
{
    test<8>();
    test<16>();
    test<32>();
    test<64>();
    test<128>();
    test<512>();
    test<4096>();
    test<65536>();
    return 0;
}
