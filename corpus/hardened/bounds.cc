/* Writes and reads outside of a block that is live. */
#include "frame.h"

static void overflow_1()
{
    char *p = prepare();
    if (bad)
        poke(p + size, 0x41);
    settle(p);
}

static void overflow_8()
{
    char *p = prepare();
    if (bad)
        poke_word(p + size);
    settle(p);
}

/* A string's zero, one byte too far. What was zero before stays as it was. */
static void overflow_nul()
{
    char *p = prepare();
    bool changes = false;
    if (bad) {
        changes = peek(p + size) != 0;
        poke(p + size, 0);
    }
    if (bad && !changes)
        harmless("a zero over a zero");
    settle(p);
}

/* A size that no allocator serves exactly: the first byte behind it is still the slot's. */
static void overflow_slack()
{
    size_t n = size - 3;
    char *p = prepare(MALLOC, n);
    if (bad)
        poke(p + n, 0x41);
    settle(p, MALLOC, n);
}

/* Not along the memory but over a page: a canary at the block's end does not notice. */
static void overflow_page()
{
    char *p = prepare();
    if (bad)
        poke_word(p + size + 4096);
    settle(p);
}

/* A loop that runs on. */
static void overflow_run()
{
    char *p = prepare();
    if (bad)
        for (size_t i = 0; i < 64; i++)
            poke(p + size + i, 0x41);
    settle(p);
}

/* Found by realloc, which must not carry on. */
static void overflow_realloc()
{
    char *p = prepare();
    if (bad)
        poke(p + size, 0x41);
    survived();
    p = (char *)realloc(p, size * 3);
    poke(p + size * 3 - 1, 1);
    settle(p);
}

/* Of a block that is never freed. */
static void overflow_kept()
{
    static char *kept;
    kept = prepare();
    if (bad)
        poke_word(kept + size);
    settle(nullptr);
}

static void underflow_1()
{
    char *p = prepare();
    if (bad)
        poke(p - 1, 0x41);
    settle(p);
}

static void underflow_8()
{
    char *p = prepare();
    if (bad)
        poke_word(p - 8);
    settle(p);
}

/* Where allocators with headers have the block's size. */
static void underflow_16()
{
    char *p = prepare();
    if (bad)
        poke_word(p - 16);
    settle(p);
}

static void underflow_page()
{
    char *p = prepare();
    if (bad)
        poke_word(p - 4096);
    settle(p);
}

static void overread_64()
{
    char *p = prepare();
    bool shown = shows(bad ? p + size : p, bad ? 64 : size);
    survived();
    judge_read(shown);
    settle(p);
}

static void overread_page()
{
    char *p = prepare();
    bool shown = shows(bad ? p + size + 4096 : p, bad ? 64 : size);
    survived();
    judge_read(shown);
    settle(p);
}

static void underread_64()
{
    char *p = prepare();
    bool shown = shows(bad ? p - 64 : p, bad ? 64 : size);
    survived();
    judge_read(shown);
    settle(p);
}

const Case BOUNDS[] = {
    {"overflow", "overflow-1", true, overflow_1},
    {"overflow", "overflow-8", true, overflow_8},
    {"overflow", "overflow-nul", true, overflow_nul},
    {"overflow", "overflow-slack", true, overflow_slack},
    {"overflow", "overflow-page", true, overflow_page},
    {"overflow", "overflow-run", true, overflow_run},
    {"overflow", "overflow-realloc", true, overflow_realloc},
    {"overflow", "overflow-kept", true, overflow_kept},
    {"underflow", "underflow-1", true, underflow_1},
    {"underflow", "underflow-8", true, underflow_8},
    {"underflow", "underflow-16", true, underflow_16},
    {"underflow", "underflow-page", true, underflow_page},
    {"read-outside", "overread-64", true, overread_64},
    {"read-outside", "overread-page", true, overread_page},
    {"read-outside", "underread-64", true, underread_64},
    {},
};
