/* 3000 short threads, 50 at a time. Each leaves blocks behind for other threads to free. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3000, AT_ONCE = 50, BOX = 512 };
static _Atomic(char *) box[BOX];

static void *brief(void *argument)
{
    uint64_t state = (uintptr_t)argument * 104729 + 3;
    char *mine[100];
    for (size_t i = 0; i < 100; i++) {
        size_t size = next_random(&state) % 2000 + 16;
        mine[i] = malloc(size);
        CHECK(mine[i] != NULL);
        memcpy(mine[i], &size, sizeof size);
        mine[i][size - 1] = (char)size;
    }
    for (size_t i = 0; i < 100; i++) {
        size_t size;
        memcpy(&size, mine[i], sizeof size);
        CHECK(mine[i][size - 1] == (char)size || size == sizeof size);
        if (i % 3 == 0) {
            /* Leaves the block, and frees a block that another thread left. */
            char *other = atomic_exchange(&box[next_random(&state) % BOX], mine[i]);
            if (other) {
                memcpy(&size, other, sizeof size);
                CHECK(size >= 16 && size < 2016);
                CHECK(other[size - 1] == (char)size);
            }
            free(other);
        } else {
            free(mine[i]);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[AT_ONCE];
    for (size_t i = 0; i < THREADS; i += AT_ONCE) {
        for (size_t j = 0; j < AT_ONCE; j++)
            CHECK(pthread_create(&threads[j], NULL, brief, (void *)(i + j + 1)) == 0);
        for (size_t j = 0; j < AT_ONCE; j++)
            CHECK(pthread_join(threads[j], NULL) == 0);
    }
    for (size_t i = 0; i < BOX; i++)
        free(atomic_load(&box[i]));
    /* 512 blocks of at most 2 KB are held at any time, and at most 50 caches. */
    CHECK(resident_kib() < 100 * 1024);
    return 0;
}
