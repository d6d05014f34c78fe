// Threads end and leave live blocks, which others read, grow and free later.
// flags: -pthread
#include "corpus.h"
#include <pthread.h>

static void *leaves(void *argument)
{
    size_t n = (size_t)(intptr_t)argument;
    char **list = malloc(64 * sizeof *list);
    for (int i = 0; i < 64; i++)
        list[i] = memset(malloc(n), 'l', n);
    return list;
}

static void *takes(void *argument)
{
    char **list = argument;
    for (int i = 0; i < 64; i++) {
        CHECK(list[i][0] == 'l');
        list[i] = realloc(list[i], (size_t)(i + 1) * 200);
        CHECK(list[i][0] == 'l' && malloc_usable_size(list[i]) >= (size_t)(i + 1) * 200);
        free(list[i]);
    }
    free(list);
    return NULL;
}

int main(void)
{
    for (int round = 0; round < 40; round++) {
        pthread_t thread;
        void *list;
        pthread_create(&thread, NULL, leaves, (void *)(intptr_t)(round * 300 + 1));
        pthread_join(thread, &list);
        pthread_create(&thread, NULL, takes, list);
        pthread_join(thread, NULL);
    }
    return 0;
}
