// The same in C++; see reads.c.
#include "reads.h"
#include <algorithm>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// read: stream_freed use-after-free function
PROGRAM(stream_freed)
{
    std::ofstream out("/dev/null");
    std::vector<char> all(5000, 'a');
    const char *p = all.data();
    BUG(all.reserve(9000);)
    out.write((const char *)hide(p), 5000);
}

// read: c_str_freed use-after-free function
PROGRAM(c_str_freed)
{
    const char *text;
    std::string kept;
    {
        std::string name = "a name that does not fit into the string itself";
        FIX(kept = name;)
        text = BUG(name) FIX(kept).c_str();
    }
    SINK(strlen((const char *)hide(text)));
}

// read: copy_freed use-after-free function
PROGRAM(copy_freed)
{
    long copy[24];
    std::unique_ptr<long[]> all(new long[24]());
    long *p = all.get();
    BUG(all.reset();)
    std::copy((long *)hide(p), (long *)hide(p) + 24, copy);
    SINK(copy[3]);
}

// read: equal_beyond buffer-overflow function
PROGRAM(equal_beyond)
{
    std::vector<unsigned char> a(48, 1), b(BUG(48) FIX(64), 1);
    SINK(memcmp((void *)hide(a.data()), hide(b.data()), BUG(64) FIX(48)));
}

// read: view_beyond buffer-overflow function
PROGRAM(view_beyond)
{
    std::unique_ptr<char[]> text(new char[40]);
    memset(text.get(), 'a', 40);
    std::string_view view((const char *)hide(text.get()), BUG(41) FIX(40));
    SINK(view.find('z') == view.npos);
}

// read: string_before buffer-underflow function
PROGRAM(string_before)
{
    std::vector<char> all(100, 'a');
    std::string copy((const char *)hide(all.data()) BUG(-4), 60);
    SINK(copy[9]);
}

// read: iterator_freed use-after-free loop
PROGRAM(iterator_freed)
{
    std::vector<int> all(10, 1);
    int *at = (int *)hide(all.data()), *end = at + 10;
    BUG(all.reserve(1000);)
    for (; at != end; ++at)
        SINK(*at);
}

// read: erase_freed use-after-free loop
PROGRAM(erase_freed)
{
    std::list<long> all;
    for (int i = 0; i < 12; i++)
        all.push_back(i);
    for (auto at = all.begin(); at != all.end();) {
        if (*at == 3) {
            FIX(at =) all.erase(at);
            FIX(continue;)
        }
        ++at;
    }
}

// read: map_freed use-after-free loop
PROGRAM(map_freed)
{
    std::map<int, int> all;
    for (int i = 0; i < 30; i++)
        all[i] = i;
    int *value = &all[7];
    BUG(all.erase(7);)
    for (int i = 0; i < 3; i++)
        SINK(*(volatile int *)hide(value));
}

// read: view_freed use-after-free loop
PROGRAM(view_freed)
{
    std::string text(64, 'a');
    std::string_view view(text);
    BUG(text = std::string(200, 'b');)
    for (const char *at = (const char *)hide(view.data()), *end = at + view.size(); at != end; at++)
        SINK(*at);
}

// read: shared_freed use-after-free loop
PROGRAM(shared_freed)
{
    struct points { double of[12]; };
    auto all = std::make_shared<points>();
    points *p = all.get();
    BUG(all.reset();)
    for (int i = 0; i < 12; i++)
        SINK(((points *)hide(p))->of[i]);
}

// read: vector_beyond buffer-overflow loop
PROGRAM(vector_beyond)
{
    std::vector<long> all(8, 1);
    const long *at = (const long *)hide(all.data());
    for (size_t i = 0; i BUG(<=) FIX(<) all.size(); i++)
        SINK(at[i]);
}

// read: string_beyond buffer-overflow loop
PROGRAM(string_beyond)
{
    std::string text(47, 'a');
    const char *at = (const char *)hide(text.data());
    for (size_t i = 0; i < text.size() BUG(+ 2); i++)
        SINK(at[i]);
}

// read: pairs_beyond buffer-overflow loop
PROGRAM(pairs_beyond)
{
    std::vector<std::pair<int, int>> all(10, { 1, 2 });
    auto at = (std::pair<int, int> *)hide(all.data());
    for (size_t i = 0; i < all.size(); i++)
        SINK(at[i].first - at[i BUG(+ 1)].second);
}

// read: rows_before buffer-underflow loop
PROGRAM(rows_before)
{
    /* Each is smoothed with its neighbours; the first has none before it. */
    for (int row = 0; row < 8; row++) {
        std::vector<int> all(32, row);
        const int *at = (const int *)hide(all.data());
        for (int i = BUG(0) FIX(1); i < 31; i++)
            SINK(at[i - 1] + at[i] + at[i + 1]);
    }
}
