/* Pointers that are no block's start, given to free, realloc and malloc_usable_size. */
#include "frame.h"
#include <sys/mman.h>

/* Neither may begin at a page, where a large block would. */
alignas(16) static char global_bytes[262144 + 64];

static void free_of(char *p, char *wrong)
{
    if (bad)
        free(wrong);
    settle(p);
}

static void free_middle()
{
    char *p = prepare();
    free_of(p, p + size / 2);
}
static void free_by_one()
{
    char *p = prepare();
    free_of(p, p + 1);
}
static void free_end()
{
    char *p = prepare();
    free_of(p, p + size);
}
/* Where slots of its kind would begin, if there were as many. */
static void free_far()
{
    char *p = prepare();
    free_of(p, p + 4096 * (size < 16 ? 16 : size));
}
static void free_stack()
{
    alignas(16) char bytes[262144 + 64];
    memset(bytes, 0, sizeof bytes);
    char *p = prepare();
    free_of(p, bytes + 16);
}
static void free_global()
{
    char *p = prepare();
    free_of(p, global_bytes + 16);
}
static void free_mapped()
{
    size_t length = (size + 4095) & ~(size_t)4095;
    char *mapped = (char *)mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = prepare();
    free_of(p, mapped);
}
/* What a pointer that nobody has set may hold: text, a small number, an address where nothing is. */
static void free_text()
{
    char *p = prepare();
    free_of(p, (char *)0x4141414141414140);
}
static void free_number()
{
    char *p = prepare();
    free_of(p, (char *)0x20);
}
static void free_nowhere()
{
    char *p = prepare();
    free_of(p, (char *)0x00005ead00000010);
}

static void realloc_of(char *p, char *wrong)
{
    if (bad) {
        char *q = (char *)realloc(wrong, size * 3);
        if (q != nullptr)
            poke(q + size * 3 - 1, 1);
    } else {
        p = (char *)realloc(p, size * 3);
        poke(p + size * 3 - 1, 1);
    }
    settle(p);
}

static void realloc_middle()
{
    char *p = prepare();
    realloc_of(p, p + size / 2);
}
static void realloc_stack()
{
    alignas(16) char bytes[262144 + 64];
    memset(bytes, 0, sizeof bytes);
    char *p = prepare();
    realloc_of(p, bytes + 16);
}
static void realloc_global()
{
    char *p = prepare();
    realloc_of(p, global_bytes + 16);
}
static void realloc_freed()
{
    char *p = prepare();
    char *q = neighbour(size);
    if (bad)
        free(p);
    realloc_of(bad ? nullptr : p, p);
    (void)q;
}

static void usable_of(char *p, char *asked, bool owned)
{
    size_t n = malloc_usable_size(bad ? asked : owned ? p : nullptr);
    survived();
    if (bad && n == 0)
        harmless("it has no bytes that may be used");
    if (bad && n != 0)
        harm("a size for no block");
    if (!bad && owned && n < size)
        say("a wrong answer");
    settle(owned ? p : nullptr);
}

static void usable_freed()
{
    char *p = prepare();
    free(p);
    usable_of(p, p, false);
}
static void usable_middle()
{
    char *p = prepare();
    usable_of(p, p + size / 2, true);
}
static void usable_global()
{
    char *p = prepare();
    usable_of(p, global_bytes + 16, true);
}

const Case POINTERS[] = {
    {"invalid-free", "free-middle", true, free_middle},
    {"invalid-free", "free-by-one", true, free_by_one},
    {"invalid-free", "free-end", true, free_end},
    {"invalid-free", "free-far", true, free_far},
    {"invalid-free", "free-stack", true, free_stack},
    {"invalid-free", "free-global", true, free_global},
    {"invalid-free", "free-mapped", true, free_mapped},
    {"invalid-free", "free-text", false, free_text},
    {"invalid-free", "free-number", false, free_number},
    {"invalid-free", "free-nowhere", false, free_nowhere},
    {"invalid-realloc", "realloc-middle", true, realloc_middle},
    {"invalid-realloc", "realloc-stack", true, realloc_stack},
    {"invalid-realloc", "realloc-global", true, realloc_global},
    {"invalid-realloc", "realloc-freed", true, realloc_freed},
    {"usable-size", "usable-freed", true, usable_freed},
    {"usable-size", "usable-middle", true, usable_middle},
    {"usable-size", "usable-global", true, usable_global},
    {},
};
