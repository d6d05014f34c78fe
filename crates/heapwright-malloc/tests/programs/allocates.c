/* Uses the heap a little, in two threads. Prints whether the process is set-uid. */
#include "check.h"
#include <pthread.h>
#include <sys/auxv.h>

static void *work(void *argument)
{
    for (size_t round = 0; round < 5; round++) {
        char *blocks[200];
        for (size_t i = 0; i < 200; i++) {
            size_t size = i * i + round;
            blocks[i] = malloc(size);
            CHECK(blocks[i] != NULL);
            paint(blocks[i], size, i);
        }
        for (size_t i = 0; i < 200; i++) {
            CHECK(is_painted(blocks[i], i * i + round, i));
            free(blocks[i]);
        }
    }
    return argument;
}

int main(void)
{
    work(NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    char *large = malloc(3 << 20);
    CHECK(large != NULL);
    memset(large, 1, 3 << 20);
    large = realloc(large, 6 << 20);
    CHECK(large != NULL);
    free(large);
    puts(getauxval(AT_SECURE) ? "secure" : "plain");
    return 0;
}
