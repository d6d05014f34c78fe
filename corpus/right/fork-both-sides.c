// Blocks from before a fork, used and freed on both sides, and new ones; three
// generations, while another thread allocates at the moment of the fork.
// flags: -pthread
// asan: alien
#include "corpus.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;

static void *busy(void *unused)
{
    while (!stop)
        churn(100);
    return unused;
}

static int generation(int left, char **blocks, int n)
{
    for (int i = 0; i < n; i++) {
        blocks[i] = realloc(blocks[i], (size_t)(i * 53 % 5000 + 1));
        blocks[i][0] = (char)i;
    }
    if (left > 0) {
        pid_t child = fork();
        if (child == 0)
            exit(generation(left - 1, blocks, n));
        int status;
        waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    churn(500);
    for (int i = 0; i < n; i++) {
        CHECK(blocks[i][0] == (char)i);
        free(blocks[i]);
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, busy, NULL);
    for (int round = 0; round < 5; round++) {
        char *blocks[200] = { 0 };
        generation(3, blocks, 200);
    }
    stop = 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
