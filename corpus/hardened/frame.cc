/* The frame: see frame.h. What it needs lies in arrays of its own, so that a broken heap does not break it. */
#include "frame.h"
#include <algorithm>
#include <unistd.h>

volatile size_t size;
volatile bool bad;
static volatile bool warm;

constexpr int WARM = 10000, LIVE = 64, BESIDE = 24;

struct Held {
    char *p;
    size_t n;
};
static Held neighbours[1024];
static int how_many;
/* Of a warm program: the blocks of the victim's call site that are live. */
static Held siblings[LIVE];
static Form siblings_form;

void say(const char *line)
{
    char text[128];
    size_t n = strlen(line);
    memcpy(text, line, n);
    text[n] = '\n';
    if (write(1, text, n + 1) < 0)
        _exit(4);
}

static void say(const char *kind, const char *what)
{
    char line[120] = "";
    strcat(strcat(line, kind), what);
    say(line);
}
void harmless(const char *why) { say("harmless: ", why); }
void harm(const char *what) { say("harm: ", what); }
void begin() { say("begin"); }
void survived()
{
    static bool said;
    if (!said)
        say("survived");
    said = true;
}

char *victim(Form form, size_t n)
{
    switch (form) {
    case MALLOC: return (char *)malloc(n);
    case CALLOC: return (char *)calloc(1, n);
    case NEW: return (char *)::operator new(n);
    case NEW_ARRAY: return (char *)::operator new[](n);
    case NEW_ALIGNED: return (char *)::operator new(n, std::align_val_t(ALIGNMENT));
    case NEW_ARRAY_ALIGNED: return (char *)::operator new[](n, std::align_val_t(ALIGNMENT));
    }
    return nullptr;
}

void right_free(Form form, char *p, size_t n)
{
    switch (form) {
    case MALLOC:
    case CALLOC: free(p); break;
    case NEW: ::operator delete(p, n); break;
    case NEW_ARRAY: ::operator delete[](p); break;
    case NEW_ALIGNED: ::operator delete(p, std::align_val_t(ALIGNMENT)); break;
    case NEW_ARRAY_ALIGNED: ::operator delete[](p, std::align_val_t(ALIGNMENT)); break;
    }
}

/* The call site of everything that is not a victim. */
static char *elsewhere(size_t n) { return (char *)malloc(n); }

static char *full_of(unsigned char what, char *p, size_t n)
{
    if (p == nullptr) {
        say("no memory");
        _exit(4);
    }
    memset(p, what, n);
    return p;
}

char *neighbour(size_t n)
{
    char *p = full_of(SECRET, elsewhere(n), n);
    if (how_many == sizeof neighbours / sizeof *neighbours)
        _exit(4);
    neighbours[how_many++] = {p, n};
    return p;
}

void others(int count, size_t n)
{
    for (int i = 0; i < count; i++) {
        char *p = elsewhere(n);
        poke(p, 1);
        free(p);
    }
}

void batch(int count, size_t n)
{
    static char *made[1024];
    for (int i = 0; i < count; i++)
        made[i] = full_of(SECRET, elsewhere(n), n);
    for (int i = 0; i < count; i++)
        free(made[i]);
}

char *reused(char *p, size_t n)
{
    char *q = nullptr;
    for (int i = 0; i < 64 && q != p; i++)
        q = neighbour(n);
    return q;
}

void surroundings(Form form, size_t n)
{
    /* Memory that was in use before: what is handed out next has been full of SECRET. */
    batch(BESIDE, n);
    siblings_form = form;
    if (warm) {
        for (int i = 0; i < WARM; i++) {
            Held &place = siblings[i * 37 % LIVE];
            if (place.p != nullptr)
                right_free(form, place.p, place.n);
            place = {victim(form, n), n};
            if (n > 0)
                poke(place.p, SECRET), poke(place.p + n - 1, SECRET);
        }
        for (Held &sibling : siblings)
            full_of(SECRET, sibling.p, sibling.n);
    }
    for (int i = 0; i < BESIDE; i++)
        neighbour(n);
}

char *prepare(Form form, size_t n)
{
    surroundings(form, n);
    char *p = full_of(MINE, victim(form, n), n);
    for (int i = 0; i < BESIDE; i++)
        neighbour(n);
    begin();
    return p;
}

static bool is_full_of(unsigned char what, const Held &block)
{
    for (size_t i = 0; i < block.n; i++)
        if ((unsigned char)block.p[i] != what)
            return false;
    return true;
}

void settle(char *p, Form form, size_t n)
{
    survived();
    if (p != nullptr)
        right_free(form, p, n);

    /* The program goes on for a while. No two of its blocks may overlap, and all keep what they hold. */
    static Held made[256];
    const int count = n > 65536 ? 64 : 256, rounds = n > 65536 ? 3 : 8;
    bool overlap = false, changed = false;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++)
            made[i] = {full_of(0x22, elsewhere(n), n), n};
        static Held all[256 + 1024];
        int total = 0;
        for (int i = 0; i < count; i++)
            all[total++] = made[i];
        for (int i = 0; i < how_many; i++)
            all[total++] = neighbours[i];
        std::sort(all, all + total, [](const Held &a, const Held &b) { return a.p < b.p; });
        for (int i = 1; i < total; i++)
            overlap |= all[i].n > 0 && all[i - 1].p + all[i - 1].n > all[i].p;
        for (int i = 0; i < count; i++)
            changed |= !overlap && !is_full_of(0x22, made[i]);
        if (overlap)
            break; /* they are not freed: that would be a second mistake */
        for (int i = 0; i < count; i++)
            free(made[i].p);
    }
    for (int i = 0; i < how_many; i++)
        changed |= !overlap && !is_full_of(SECRET, neighbours[i]);
    for (Held &sibling : siblings)
        changed |= sibling.p != nullptr && !is_full_of(SECRET, sibling);
    if (overlap)
        harm("two owners");
    if (changed)
        harm("another block changed");
    for (int i = 0; i < how_many; i++)
        free(neighbours[i].p);
    for (Held &sibling : siblings)
        if (sibling.p != nullptr)
            right_free(siblings_form, sibling.p, sibling.n);
    say("end");
}

bool shows(const char *p, size_t n)
{
    int row = 0;
    bool shown = false;
    for (size_t i = 0; i < n; i++) {
        row = (unsigned char)peek(p + i) == SECRET ? row + 1 : 0;
        shown |= row == 4;
    }
    /* An address of the heap: less than 1 TiB from here. */
    const uintptr_t here = (uintptr_t)p, near = (uintptr_t)1 << 40;
    for (size_t i = -here % 8; i + 8 <= n; i += 8) {
        uintptr_t word = *(const volatile uintptr_t *)(p + i);
        shown |= word - here + near < 2 * near;
    }
    return shown;
}

void judge_read(bool shown)
{
    if (bad && shown)
        harm("read what was written, or an address");
    if (bad && !shown)
        harmless("read neither bytes that were written nor addresses");
    if (!bad && shown)
        say("a wrong answer");
}

static const Case *const PARTS[] = {BOUNDS, LIFETIME, POINTERS, CONTENTS, FORMS};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const Case *part : PARTS)
            for (const Case *c = part; c->name != nullptr; c++)
                printf("%s %s %s\n", c->group, c->name, c->sized ? "8 4096 262144" : "8");
        return 0;
    }
    if (argc != 5) {
        fprintf(stderr, "usage: misuse --list | misuse NAME SIZE bad|right cold|warm\n");
        return 2;
    }
    size = strtoul(argv[2], nullptr, 0);
    bad = strcmp(argv[3], "bad") == 0;
    warm = strcmp(argv[4], "warm") == 0;
    for (const Case *part : PARTS)
        for (const Case *c = part; c->name != nullptr; c++)
            if (strcmp(argv[1], c->name) == 0) {
                c->run();
                return 0;
            }
    fprintf(stderr, "misuse: no case is called %s\n", argv[1]);
    return 2;
}
