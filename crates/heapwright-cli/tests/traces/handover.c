/* The program of handover.trace, which the tests record again. It makes blocks of all sizes in one
 * thread, resizes them in another and frees them in a third. It has aligned and zeroed blocks,
 * threads that end and, with an argument, a forked child.
 *
 *     cc -O1 -pthread -fno-builtin -o handover handover.c
 *     heapwright record -o handover.trace -- ./handover */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 60, ROUNDS = 4 };

static void *blocks[BLOCKS];

static void *make(void *round) {
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(i + 1) * (i % 7 == 0 ? 1000 : 17);
        if (i % 5 == 0)
            blocks[i] = calloc(1, size);
        else if (i % 5 != 1 || posix_memalign(&blocks[i], 256, size) != 0)
            blocks[i] = malloc(size);
        memset(blocks[i], (int)(long)round, size);
        free(malloc(24));
    }
    return NULL;
}

static void *resize(void *round) {
    (void)round;
    for (int i = 0; i < BLOCKS; i += 3)
        blocks[i] = realloc(blocks[i], (size_t)(i + 1) * 40);
    return NULL;
}

static void *drop(void *round) {
    (void)round;
    for (int i = BLOCKS; i-- > 0;)
        free(blocks[i]);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    void *(*steps[])(void *) = {make, resize, drop};
    for (long round = 0; round < ROUNDS; round++)
        for (int step = 0; step < 3; step++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, steps[step], (void *)round) != 0)
                return 2;
            pthread_join(thread, NULL);
        }
    if (argc > 1) {
        char *inherited = malloc(100);
        pid_t child = fork();
        if (child == 0) {
            free(inherited);
            for (int i = 1; i < 50; i++)
                free(malloc(i));
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        free(inherited);
        return status != 0;
    }
    return 0;
}
