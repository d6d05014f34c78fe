# ways: preload
# needs: g++:g++
# main: $(g++ -print-prog-name=cc1plus)
cat >stl.cc <<'CC'
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
struct alignas(64) Line { char bytes[64]; };
int main() {
    std::map<std::string, std::vector<int>> index;
    for (int i = 0; i < 50000; i++) index["key" + std::to_string(i * 7919 % 4999)].push_back(i);
    std::unordered_map<int, std::shared_ptr<std::string>> table;
    for (auto &[key, list] : index) table[list.front()] = std::make_shared<std::string>(key);
    long total = 0;
    for (auto &[n, text] : table) total += n + text->size();
    std::vector<std::future<long>> work;
    for (int t = 0; t < 4; t++)
        work.push_back(std::async(std::launch::async, [t] {
            std::vector<std::unique_ptr<Line>> lines; long sum = 0;
            for (int i = 0; i < 20000; i++) {
                lines.push_back(std::make_unique<Line>());
                sum += reinterpret_cast<unsigned long>(lines.back().get()) % 64 + t;
                if (i % 3 == 0) lines[i / 2].reset();
            }
            return sum;
        }));
    for (auto &w : work) total += w.get();
    std::regex words("([a-z]+)([0-9]+)");
    std::smatch match; std::string text = "abc123 def456";
    while (std::regex_search(text, match, words)) { total += std::stol(match[2]); text = match.suffix(); }
    try { std::vector<long>().at(3); } catch (const std::out_of_range &) { total++; }
    try { volatile std::size_t huge = ~std::size_t(0) / 2; delete[] new char[huge]; } catch (const std::bad_alloc &) { total++; }
    std::ostringstream out; out << total << ' ' << index.size();
    std::cout << out.str() << '\n';
}
CC
g++ -std=c++20 -O2 -pthread stl.cc -o stl && ./stl
g++ -std=c++20 -O1 -S stl.cc -o - | cksum
