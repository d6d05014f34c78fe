// Documents of objects, lists and texts that are built, written, read back and dropped: document
// SCALE. Each value has a heap block, as in many JSON libraries.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

static unsigned state = 12345;
static unsigned draw(unsigned limit)
{
    state = state * 1103515245u + 12345u;
    return (state >> 8) % limit;
}

struct Value {
    virtual ~Value() = default;
    virtual void write(std::string &out) const = 0;
};
using Owned = std::unique_ptr<Value>;

struct Number : Value {
    long number;
    explicit Number(long n) : number(n) {}
    void write(std::string &out) const override { out += std::to_string(number); }
};

struct Text : Value {
    std::string text;
    explicit Text(std::string t) : text(std::move(t)) {}
    void write(std::string &out) const override { out += '"' + text + '"'; }
};

struct List : Value {
    std::vector<Owned> values;
    void write(std::string &out) const override
    {
        out += '[';
        for (const Owned &value : values) {
            value->write(out);
            out += ',';
        }
        out += ']';
    }
};

struct Object : Value {
    std::vector<std::pair<std::string, Owned>> members;
    void write(std::string &out) const override
    {
        out += '{';
        for (const auto &member : members) {
            out += '"' + member.first + "\":";
            member.second->write(out);
            out += ',';
        }
        out += '}';
    }
};

static Owned made(unsigned depth)
{
    unsigned kind = depth == 0 ? draw(2) : draw(6);
    if (kind == 0)
        return std::make_unique<Number>(draw(100000));
    if (kind == 1)
        return std::make_unique<Text>("text " + std::string(draw(50), 'y'));
    if (kind < 4) {
        auto list = std::make_unique<List>();
        for (unsigned i = draw(8) + 1; i > 0; i--)
            list->values.push_back(made(depth - 1));
        return list;
    }
    auto object = std::make_unique<Object>();
    for (unsigned i = draw(8) + 1; i > 0; i--)
        object->members.emplace_back("member-" + std::to_string(draw(100)), made(depth - 1));
    return object;
}

static std::string quoted(const char *&at)
{
    const char *begin = ++at;
    while (*at != '"')
        at++;
    return std::string(begin, at++);
}

static Owned read(const char *&at)
{
    if (*at == '"')
        return std::make_unique<Text>(quoted(at));
    if (*at == '[') {
        auto list = std::make_unique<List>();
        for (at++; *at != ']'; at++)
            list->values.push_back(read(at));
        at++;
        return list;
    }
    if (*at == '{') {
        auto object = std::make_unique<Object>();
        for (at++; *at != '}'; at++) {
            std::string name = quoted(at);
            at++;
            object->members.emplace_back(std::move(name), read(at));
        }
        at++;
        return object;
    }
    char *end;
    long number = strtol(at, &end, 10);
    at = end;
    return std::make_unique<Number>(number);
}

int main(int count, char **words)
{
    int scale = count > 1 ? atoi(words[1]) : 1;
    std::vector<Owned> kept(64);
    size_t total = 0;
    for (int round = 0; round < scale; round++) {
        auto whole = std::make_unique<List>();
        for (int i = 0; i < 20; i++)
            whole->values.push_back(made(5));
        std::string text, again;
        whole->write(text);
        const char *at = text.c_str();
        Owned copy = read(at);
        copy->write(again);
        if (text != again)
            return 1;
        total += text.size();
        kept[draw(64)] = std::move(copy);
    }
    printf("%zu\n", total);
}
