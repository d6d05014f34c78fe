// leaks: reachable 1 64*8 at A in main
// leaks: reachable 500 500*32 at B in insert
// leaks: definite 5 5*32 at B in insert
// A table that lives to the end, with chains of entries; a few entries were taken out and not freed.
#include "corpus.h"

struct entry { struct entry *next; long key; long pad[2]; };
struct entry **buckets;

NOINLINE void insert(long key)
{
    struct entry *e = calloc(1, sizeof *e); // LEAK B
    e->key = key;
    e->next = buckets[key % 64];
    buckets[key % 64] = e;
}

NOINLINE void take(long key)
{
    for (struct entry **at = &buckets[key % 64]; *at != NULL; at = &(*at)->next)
        if ((*at)->key == key) {
            struct entry *e = *at;
            *at = e->next;
            e->next = NULL;
            FIX(free(e);)
            return;
        }
}

int main(void)
{
    buckets = calloc(64, sizeof *buckets); // LEAK A
    for (long key = 0; key < 505; key++)
        insert(key);
    for (long key = 0; key < 505; key += 101)
        take(key);
    wipe();
    return 0;
}
