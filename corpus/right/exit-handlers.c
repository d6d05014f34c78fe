// Exit handlers and destructors that free, allocate, and register another.
#include "corpus.h"

char *blocks[33];
static int used;

static void last(void)
{
    free(blocks[--used]);
    blocks[used] = NULL;
}

static void one(void)
{
    free(blocks[--used]);
    blocks[used] = malloc(77);
    used++;
    atexit(last);
    churn(10);
}

__attribute__((destructor)) static void unload(void)
{
    CHECK(used == 0);
    free(strdup("freed last"));
}

int main(void)
{
    for (int i = 0; i < 32; i++) {
        blocks[used++] = malloc((size_t)i * 300);
        atexit(one);
    }
    return 0;
}
