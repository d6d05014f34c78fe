// The standard containers under load, in several threads that pass objects on.
#include "check.h"
#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static std::mutex lock;
static std::deque<std::unique_ptr<std::map<int, std::string>>> passed_on;

static size_t work(unsigned seed)
{
    uint64_t state = seed * 7919 + 1;
    std::map<int, std::string> map;
    std::unordered_map<std::string, std::vector<int>> table;
    std::list<std::shared_ptr<std::string>> list;
    std::set<uint64_t> set;
    std::deque<std::function<size_t()>> calls;
    size_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t r = next_random(&state);
        int key = (int)(r % 5000);
        map[key] = std::string(r % 200, (char)('a' + r % 26));
        table[std::to_string(key % 700)].push_back(i);
        list.push_back(std::make_shared<std::string>(map[key]));
        if (list.size() > 300)
            list.pop_front();
        set.insert(r);
        if (set.size() > 1000)
            set.erase(set.begin());
        std::string captured = map[key];
        calls.emplace_back([captured] { return captured.size(); });
        if (calls.size() > 100) {
            sum += calls.front()();
            calls.pop_front();
        }
        if (i % 1000 == 0) {
            auto copy = std::make_unique<std::map<int, std::string>>(map);
            std::lock_guard<std::mutex> guard(lock);
            passed_on.push_back(std::move(copy));
            if (passed_on.size() > 6)
                passed_on.pop_front();
        }
        if (key % 3 == 0)
            map.erase(key);
    }
    for (auto &[key, value] : map)
        CHECK(std::all_of(value.begin(), value.end(), [&](char c) { return c == value[0]; }));
    std::ostringstream text;
    for (auto &[key, value] : table)
        text << key << ':' << value.size() << ' ';
    return sum + text.str().size();
}

int main()
{
    size_t expected = work(1);
    std::vector<std::future<size_t>> futures;
    for (unsigned i = 0; i < 4; i++)
        futures.push_back(std::async(std::launch::async, work, 1));
    for (auto &f : futures)
        CHECK(f.get() == expected);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++)
        threads.emplace_back([i] { work(i + 10); });
    for (auto &t : threads)
        t.join();
    passed_on.clear();
    std::vector<int> numbers(3000000);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::stable_sort(numbers.begin(), numbers.end(), std::greater<>());
    CHECK(numbers[0] == 2999999 && numbers.back() == 0);
    return 0;
}
