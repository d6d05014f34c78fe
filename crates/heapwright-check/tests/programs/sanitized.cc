/*
 * A vector that libstdc++ annotates, in a program that is compiled without a sanitizer.
 *
 *   sanitized         only correct accesses
 *   sanitized beyond  reads a byte behind the last element, within the vector's capacity
 */
#define _GLIBCXX_SANITIZE_STD_ALLOCATOR 1
#define _GLIBCXX_SANITIZE_VECTOR 1
#include <cstring>
#include <vector>

int main(int count, char **)
{
    std::vector<char> text;
    text.reserve(100);
    for (int i = 0; i < 40; i++)
        text.push_back('a');
    text.pop_back();
    text.insert(text.begin(), 60, 'b');
    text.resize(90);
    text.shrink_to_fit();
    text.reserve(200);
    char copy[200];
    std::memcpy(copy, text.data(), text.size());
    if (count > 1)
        std::memcpy(copy, text.data(), text.size() + 1);
    return 0;
}
