// thread_local objects whose destructors allocate and free, also blocks that main made.
#include "check.h"
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static std::vector<std::string> *from_main[64];

struct Local {
    std::map<int, std::string> map;
    std::unique_ptr<std::vector<int>> vector = std::make_unique<std::vector<int>>(1000, 7);
    int number = 0;
    ~Local()
    {
        for (int i = 0; i < 100; i++)
            map[i] = std::string((size_t)i * 3, 'x');
        CHECK(vector->size() == 1000 && (*vector)[999] == 7);
        std::vector<std::string> more(50, std::string(40, 'y'));
        CHECK(more[49].size() == 40);
        delete from_main[number];
    }
};

// The second object is made while the first is destroyed.
struct Late {
    std::string text = std::string(100, 'z');
    ~Late() { CHECK(text.size() == 100); }
};

struct Early {
    int number = 0;
    ~Early()
    {
        static thread_local Late late;
        late.text += std::to_string(number);
        late.text.resize(100);
    }
};

static thread_local Early early;
static thread_local Local local;

int main()
{
    for (int round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 64; i++) {
            from_main[i] = new std::vector<std::string>(20, std::string(60, 'm'));
            threads.emplace_back([i] {
                local.number = i;
                early.number = i;
                local.map[i] = "hello";
            });
        }
        for (auto &t : threads)
            t.join();
    }
    from_main[0] = nullptr;
    local.number = 0;
    local.map[1] = "main has one as well";
    return 0;
}
