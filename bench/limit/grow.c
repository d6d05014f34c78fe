/* Programs that grow until the kernel ends them, in ten ways: `grow WAY`. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int way;

/* Blocks of a size, filled, with a pause after each `pause_after` blocks. */
static void blocks(size_t size, int pause_after)
{
    for (int i = 1;; i++) {
        memset(malloc(size), 1, size);
        if (pause_after != 0 && i % pause_after == 0)
            usleep(500);
    }
}

static void *grow(void *unused)
{
    char *volatile array = NULL;
    switch (way) {
    case 0: blocks(64, 0); break;
    case 1: blocks(3000, 0); break;
    case 2: blocks(1 << 20, 0); break;
    case 3: /* an array that doubles */
        for (size_t size = 1 << 16;; size *= 2) {
            array = realloc(array, size);
            memset(array + size / 2, 1, size / 2);
        }
    case 4: /* an array that grows by a megabyte */
        for (size_t size = 1 << 20;; size += 1 << 20) {
            array = realloc(array, size);
            memset(array + size - (1 << 20), 1, 1 << 20);
        }
    case 5: blocks(100 << 10, 5); break;
    case 6: /* an array that is larger than the limit, filled bit by bit */
        array = malloc((size_t)2 << 30);
        for (size_t at = 0; at < (size_t)2 << 30; at += 4096)
            array[at] = 1;
        break;
    case 7: blocks(500, 1000); break;
    default: blocks(20000, 0); break;
    }
    return unused;
}

int main(int count, char **words)
{
    way = count > 1 ? atoi(words[1]) : 0;
    if (way == 8) {
        pthread_t thread;
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, grow, NULL);
    }
    grow(NULL);
    return 0;
}
