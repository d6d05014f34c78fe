// Maps, strings and vectors of the standard library: words SCALE.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

static unsigned state = 12345;
static unsigned draw(unsigned limit)
{
    state = state * 1103515245u + 12345u;
    return (state >> 8) % limit;
}

static std::string word()
{
    return "word-" + std::to_string(draw(5000)) + std::string(draw(40), 'x');
}

int main(int count, char **words)
{
    int scale = count > 1 ? atoi(words[1]) : 1;
    std::map<std::string, std::vector<std::string>> index;
    std::unordered_map<int, std::shared_ptr<std::string>> shared;
    size_t total = 0;
    for (int round = 0; round < scale; round++) {
        for (int i = 0; i < 3000; i++) {
            std::string name = word();
            std::vector<std::string> &list = index[name.substr(0, 8)];
            list.push_back(name + "-" + word());
            if (list.size() > 60)
                list.erase(list.begin(), list.begin() + 40);
            shared[static_cast<int>(draw(20000))] = std::make_shared<std::string>(std::move(name));
        }
        std::string text;
        for (const auto &entry : index)
            text += entry.first + ":" + entry.second.back() + "\n";
        total += text.size();
        for (int i = 0; i < 1000; i++)
            shared.erase(static_cast<int>(draw(20000)));
        if (round % 10 == 9)
            index.clear();
    }
    printf("%zu %zu %zu\n", index.size(), shared.size(), total);
}
