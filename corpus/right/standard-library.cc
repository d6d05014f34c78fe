// Streams, locales, regular expressions, maps, functions, futures, shared owners.
// flags: -pthread
#include "corpus.h"
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

int main()
{
    std::map<std::string, std::vector<int>> index;
    std::unordered_map<int, std::shared_ptr<std::string>> table;
    std::deque<std::string> queue;
    std::list<std::weak_ptr<std::string>> weak;
    for (int i = 0; i < 3000; i++) {
        index["key number " + std::to_string(i % 300)].push_back(i);
        table[i % 500] = std::make_shared<std::string>(i % 90, 't');
        weak.push_back(table[i % 500]);
        queue.push_back("item " + std::to_string(i));
        if (i % 3 == 0)
            queue.pop_front();
        if (i % 7 == 0)
            index.erase(index.begin());
    }
    for (auto at = table.begin(); at != table.end();)
        at = at->first % 2 ? table.erase(at) : std::next(at);
    std::ostringstream out;
    out.imbue(std::locale::classic());
    std::regex words("([a-z]+) ([0-9]+)");
    std::smatch match;
    for (const auto &text : queue)
        if (std::regex_match(text, match, words) && match[2].length() == 4)
            out << match[2] << ' ';
    std::vector<std::future<size_t>> work;
    for (int t = 0; t < 4; t++)
        work.push_back(std::async(std::launch::async, [t] {
            std::set<std::string> all;
            for (int i = 0; i < 2000; i++)
                all.insert(std::string(i % 50 + t, 'a'));
            return all.size();
        }));
    size_t total = out.str().size();
    for (auto &w : work)
        total += w.get();
    std::function<size_t()> later = [=] { return total + queue.size(); };
    std::cout << later() << ' ' << weak.size() << std::endl;
    std::wstring wide(100, L'w');
    std::wcerr << wide.size() << std::endl;
    return 0;
}
