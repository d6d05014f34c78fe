/* Blocks without bytes, and bytes that were never written. */
#include "frame.h"

static void empty_write_of(Form form)
{
    char *p = prepare(form, 0);
    if (bad)
        poke(p, 0x41);
    settle(p, form, 0);
}
static void empty_write() { empty_write_of(MALLOC); }
static void empty_write_calloc() { empty_write_of(CALLOC); }
static void empty_write_new() { empty_write_of(NEW); }
static void empty_write_8()
{
    char *p = prepare(MALLOC, 0);
    if (bad)
        poke_word(p);
    settle(p, MALLOC, 0);
}
static void empty_read()
{
    batch(64, 8);
    char *p = prepare(MALLOC, 0);
    bool shown = bad && shows(p, 16);
    survived();
    judge_read(shown);
    settle(p, MALLOC, 0);
}
/* realloc to nothing gives back the block; it may return a null, or a block without bytes. */
static void empty_realloc()
{
    char *p = prepare();
    char *q = (char *)realloc(p, 0);
    if (bad)
        poke(q == nullptr ? p : q, 0x41);
    survived();
    free(q);
    settle(nullptr);
}

/* What a fresh block shows of the one that was there before. */
static void fresh()
{
    surroundings();
    batch(64, size);
    begin();
    bool shown = false;
    for (int i = 0; i < 32; i++) {
        char *p = victim(MALLOC, size);
        if (!bad)
            memset(p, MINE, size);
        shown |= shows(p, size);
        free(p);
    }
    survived();
    judge_read(shown);
    settle(nullptr);
}
/* The memory was of blocks of another size. */
static void fresh_from_others()
{
    surroundings();
    batch(24, size * 16);
    batch(64, size * 2);
    begin();
    bool shown = false;
    static char *made[256];
    int count = size > 65536 ? 32 : 256;
    for (int i = 0; i < count; i++) {
        made[i] = victim(MALLOC, size);
        if (!bad)
            memset(made[i], MINE, size);
        shown |= shows(made[i], size);
    }
    for (int i = 0; i < count; i++)
        free(made[i]);
    survived();
    judge_read(shown);
    settle(nullptr);
}
/* The part by which a block has grown. */
static void fresh_grown()
{
    batch(64, size * 3);
    char *p = prepare();
    p = (char *)realloc(p, size * 3);
    if (!bad)
        memset(p + size, MINE, size * 2);
    bool shown = shows(p + size, size * 2);
    survived();
    judge_read(shown);
    settle(p);
}

const Case CONTENTS[] = {
    {"zero-size", "empty-write", false, empty_write},
    {"zero-size", "empty-write-calloc", false, empty_write_calloc},
    {"zero-size", "empty-write-new", false, empty_write_new},
    {"zero-size", "empty-write-8", false, empty_write_8},
    {"zero-size", "empty-read", false, empty_read},
    {"zero-size", "empty-realloc", true, empty_realloc},
    {"fresh-read", "fresh", true, fresh},
    {"fresh-read", "fresh-from-others", true, fresh_from_others},
    {"fresh-read", "fresh-grown", true, fresh_grown},
    {},
};
