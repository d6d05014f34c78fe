/* The pools and arenas of heapwright.h. Makes a mistake, if the argument names one. */
#include "check.h"
#include <heapwright.h>

enum { COUNT = 20000 };
struct node {
    struct node *next;
    size_t value;
    char text[24];
};

struct seen {
    size_t count, sum;
    uintptr_t last;
    size_t stop_after;
};

static bool visit(void *object, void *context)
{
    struct seen *seen = context;
    CHECK((uintptr_t)object > seen->last);
    seen->last = (uintptr_t)object;
    seen->count++;
    seen->sum += ((struct node *)object)->value;
    return seen->stop_after == 0 || seen->count < seen->stop_after;
}

static void pools(void)
{
    static struct node *nodes[COUNT];
    hw_pool *pool = hw_pool_create(sizeof(struct node), _Alignof(struct node), 0, "node");
    CHECK(pool != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        nodes[i] = hw_pool_alloc(pool);
        CHECK(nodes[i] != NULL && is_aligned(nodes[i], _Alignof(struct node)));
        paint(nodes[i], sizeof *nodes[i], i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(is_painted(nodes[i], sizeof *nodes[i], i));
        nodes[i]->value = i;
        CHECK(hw_pool_contains(pool, nodes[i]) && hw_pool_contains(pool, nodes[i]->text));
    }
    CHECK(!hw_pool_contains(pool, &pool) && !hw_pool_contains(pool, NULL));
    hw_description d = hw_describe(nodes[7]->text);
    CHECK(d.kind == HW_KIND_POOL && d.block == nodes[7] && d.size == sizeof(struct node));
    CHECK(d.offset == offsetof(struct node, text) && d.owner != 0);
    CHECK(strstr(d.words, "pool") != NULL);
    CHECK(!hw_owns(nodes[7]));
    errno = 3;
    size_t sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 10 != 0)
            hw_pool_free(pool, nodes[i]);
        else
            sum += i;
    }
    hw_pool_free(pool, NULL);
    CHECK(errno == 3);
    struct seen seen = {0, 0, 0, 0};
    CHECK(hw_pool_walk(pool, visit, &seen) && seen.count == COUNT / 10 && seen.sum == sum);
    struct seen few = {0, 0, 0, 5};
    CHECK(!hw_pool_walk(pool, visit, &few) && few.count == 5);
    hw_pool_statistics stats;
    CHECK(hw_pool_stats(pool, &stats, sizeof stats) == sizeof stats);
    CHECK(stats.live == COUNT / 10 && stats.capacity >= COUNT);
    CHECK(stats.slot_size == sizeof(struct node) && stats.segments >= 1);
    struct {
        hw_pool_statistics known;
        uint64_t later;
    } larger = {.later = 7};
    CHECK(hw_pool_stats(pool, &larger.known, sizeof larger) == sizeof stats && larger.later == 0);
    hw_pool_trim(pool);
    hw_pool_reset(pool, SIZE_MAX);
    hw_pool_stats(pool, &stats, sizeof stats);
    CHECK(stats.live == 0 && stats.capacity > 0);
    hw_pool_reset(pool, 100);
    CHECK(hw_pool_preheat(pool, 1000, true));
    hw_pool_reset(pool, 0);
    hw_pool_stats(pool, &stats, sizeof stats);
    CHECK(stats.capacity == 0 && stats.reserved_bytes == 0);
    CHECK(hw_pool_alloc(pool) != NULL);
    hw_pool_destroy(pool);
    hw_pool_destroy(NULL);

    hw_pool *few_of = hw_pool_create(100, 4, 3, NULL);
    for (int i = 0; i < 3; i++)
        CHECK(hw_pool_alloc(few_of) != NULL);
    errno = 0;
    CHECK(hw_pool_alloc(few_of) == NULL && errno == ENOMEM);
    CHECK(!hw_pool_preheat(few_of, 1, false));
    hw_pool_destroy(few_of);

    errno = 0;
    CHECK(hw_pool_create(8, 3, 0, NULL) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(hw_pool_create(8, 0, 0, NULL) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(hw_pool_create(SIZE_MAX, 8, 0, NULL) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(hw_pool_create((size_t)1 << 50, 8, 0, NULL) == NULL && errno == ENOMEM);
    hw_pool *nothing = hw_pool_create(0, 1, 0, "nothing");
    void *one = hw_pool_alloc(nothing), *two = hw_pool_alloc(nothing);
    CHECK(one != NULL && two != NULL && one != two);
    hw_pool_destroy(nothing);
    hw_pool *pages = hw_pool_create(4096, 4096, 0, "pages");
    CHECK(is_aligned(hw_pool_alloc(pages), 4096));
    hw_pool_destroy(pages);
}

static void arenas(void)
{
    hw_arena *arena = hw_arena_create(0);
    CHECK(arena != NULL);
    for (int round = 0; round < 3; round++) {
        char *all[200];
        for (size_t i = 0; i < 200; i++) {
            all[i] = hw_arena_alloc(arena, i * 37);
            CHECK(all[i] != NULL && is_aligned(all[i], 16));
            paint(all[i], i * 37, i);
        }
        for (size_t i = 0; i < 200; i++)
            CHECK(is_painted(all[i], i * 37, i));
        CHECK(hw_describe(all[5]).kind == HW_KIND_ARENA);
        hw_arena_mark_t mark = hw_arena_mark(arena);
        hw_arena_statistics before, after;
        hw_arena_stats(arena, &before, sizeof before);
        CHECK(hw_arena_alloc(arena, 5 << 20) != NULL);
        hw_arena_rewind(arena, mark);
        CHECK(hw_arena_stats(arena, &after, sizeof after) == sizeof after);
        CHECK(after.used_bytes == before.used_bytes && after.reserved_bytes > 5 << 20);
        char *last = hw_arena_alloc(arena, 10);
        paint(last, 10, 9);
        CHECK(hw_arena_resize(arena, last, 10, 1000) == last && is_painted(last, 10, 9));
        CHECK(hw_arena_resize(arena, NULL, 0, 10) != NULL);
        char *moved = hw_arena_resize(arena, last, 1000, 2000);
        CHECK(moved != last && is_painted(moved, 10, 9));
        hw_arena_free(arena, moved, 2000);
        CHECK(hw_arena_alloc(arena, 1) == moved);
        CHECK(is_aligned(hw_arena_alloc_aligned(arena, 1, 8192), 8192));
        hw_arena_reset(arena);
        hw_arena_stats(arena, &after, sizeof after);
        CHECK(after.used_bytes == 0);
    }
    CHECK(hw_arena_trim(arena) > 0);
    errno = 0;
    CHECK(hw_arena_alloc(arena, SIZE_MAX) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(hw_arena_alloc_aligned(arena, 8, 3) == NULL && errno == EINVAL);
    char *block = hw_arena_alloc(arena, 8);
    errno = 0;
    CHECK(hw_arena_resize(arena, block, 8, SIZE_MAX) == NULL && errno == ENOMEM);
    hw_arena_destroy(arena);
    hw_arena_destroy(NULL);
    hw_arena *small = hw_arena_create(1 << 16);
    CHECK(hw_arena_alloc(small, 60000) != NULL);
    errno = 0;
    CHECK(hw_arena_alloc(small, 60000) == NULL && errno == ENOMEM);
    hw_arena_destroy(small);
}

/* Makes the mistake of that name. */
static void mistake(const char *what)
{
    hw_pool *nodes = hw_pool_create(48, 8, 0, "Node"), *edges = hw_pool_create(32, 8, 0, "Edge");
    char *node = hw_pool_alloc(nodes);
    char *edge[100];
    for (int i = 0; i < 100; i++)
        edge[i] = hw_pool_alloc(edges);
    if (strcmp(what, "free") == 0)
        free(node);
    if (strcmp(what, "interior") == 0)
        free(node + 12);
    if (strcmp(what, "arena") == 0)
        free(hw_arena_alloc(hw_arena_create(0), 8));
    if (strcmp(what, "other-pool") == 0)
        hw_pool_free(edges, node);
    if (strcmp(what, "malloc") == 0)
        hw_pool_free(edges, malloc(100));
    if (strcmp(what, "twice") == 0)
        hw_pool_free(edges, edge[0]);
    if (strcmp(what, "stale-heap") == 0)
        hw_pool_free(edges, &nodes);
    /* A pool checks freed objects when its front overflows. */
    for (int i = 0; i < 100; i++)
        hw_pool_free(edges, edge[i]);
    hw_pool_trim(edges);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        mistake(arguments[1]);
        return 0;
    }
    pools();
    arenas();
    return 0;
}
