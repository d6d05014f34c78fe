/* Blocks that are freed twice, or used after they were freed. */
#include "frame.h"
#include <pthread.h>

static void double_at_once()
{
    char *p = prepare();
    free(p);
    if (bad)
        free(p);
    settle(nullptr);
}

/* Others are freed between the two. */
static void double_after_others()
{
    char *p = prepare();
    free(p);
    batch(64, size);
    if (bad)
        free(p);
    settle(nullptr);
}

/* So many others that a quarantine has forgotten it. */
static void double_after_many()
{
    char *p = prepare();
    free(p);
    others(10000, size);
    if (bad)
        free(p);
    settle(nullptr);
}

/* If the memory has an owner again, this free takes it away from him: no allocator can tell that one, but
   its owner's own free is then the second. */
static void double_after_reuse()
{
    char *p = prepare();
    free(p);
    reused(p, size);
    if (bad)
        free(p);
    settle(nullptr);
}

static void *frees(void *p)
{
    free(p);
    return nullptr;
}

static void double_by_thread()
{
    char *p = prepare();
    free(p);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, frees, bad ? p : nullptr) != 0)
        abort();
    pthread_join(thread, nullptr);
    settle(nullptr);
}

/* The block that realloc has moved away from. */
static void double_after_realloc()
{
    char *p = prepare();
    char *q = (char *)realloc(p, size * 9);
    poke(q, 1);
    if (bad && q != p)
        free(p);
    if (bad && q == p)
        harmless("it was not moved");
    survived();
    free(q);
    settle(nullptr);
}

static void write_after_free(size_t where, int after)
{
    char *p = prepare();
    if (!bad)
        poke(p + where, 0x41);
    free(p);
    others(after, size);
    if (bad)
        poke(p + where, 0x41);
    settle(nullptr);
}
static void write_first() { write_after_free(0, 0); }
static void write_middle() { write_after_free(size / 2, 0); }
static void write_last() { write_after_free(size - 1, 0); }
static void write_after_others() { write_after_free(0, 1000); }

static void write_after_realloc()
{
    char *p = prepare();
    char *q = (char *)realloc(p, size * 9);
    poke(bad ? p : q, 0x41);
    if (bad && q == p)
        harmless("it was not moved");
    survived();
    free(q);
    settle(nullptr);
}

/* The memory has a new owner, whose bytes are changed, if the allocator hands it out so soon. */
static void write_after_reuse()
{
    char *p = prepare();
    free(p);
    char *q = reused(p, size);
    poke(bad ? p : q, bad ? 0x41 : SECRET);
    settle(nullptr);
}

static void read_after_free_of(int after)
{
    char *p = prepare();
    memset(p, SECRET, size);
    if (!bad && !shows(p, size))
        say("a wrong answer");
    free(p);
    others(after, size);
    bool shown = bad && shows(p, size);
    survived();
    judge_read(shown);
    settle(nullptr);
}
static void read_at_once() { read_after_free_of(0); }
static void read_after_others() { read_after_free_of(1000); }

static void read_after_realloc()
{
    char *p = prepare();
    memset(p, SECRET, size);
    char *q = (char *)realloc(p, size * 9);
    bool shown = bad && q != p && shows(p, size);
    survived();
    judge_read(shown);
    free(q);
    settle(nullptr);
}

static void read_after_reuse()
{
    char *p = prepare();
    free(p);
    reused(p, size);
    bool shown = bad && shows(p, size);
    survived();
    judge_read(shown);
    settle(nullptr);
}

const Case LIFETIME[] = {
    {"double-free", "double-at-once", true, double_at_once},
    {"double-free", "double-after-others", true, double_after_others},
    {"double-free", "double-after-many", true, double_after_many},
    {"double-free", "double-after-reuse", true, double_after_reuse},
    {"double-free", "double-by-thread", true, double_by_thread},
    {"double-free", "double-after-realloc", true, double_after_realloc},
    {"write-after-free", "write-first", true, write_first},
    {"write-after-free", "write-middle", true, write_middle},
    {"write-after-free", "write-last", true, write_last},
    {"write-after-free", "write-after-others", true, write_after_others},
    {"write-after-free", "write-after-realloc", true, write_after_realloc},
    {"write-after-free", "write-after-reuse", true, write_after_reuse},
    {"read-after-free", "read-at-once", true, read_at_once},
    {"read-after-free", "read-after-others", true, read_after_others},
    {"read-after-free", "read-after-realloc", true, read_after_realloc},
    {"read-after-free", "read-after-reuse", true, read_after_reuse},
    {},
};
