/* Buffers that grow: GROW [LIMIT MB]. Prints the peak of resident memory in percent of the peak of
 * live memory. LIMIT ("data", "as") sets that limit: the program must then only come to its end. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MB ((size_t)1 << 20)

static char *filled(char *block, size_t size)
{
    if (block == NULL) {
        fprintf(stderr, "no memory for %zu MB\n", size / MB);
        exit(1);
    }
    memset(block, 1, size);
    return block;
}

static char *made(size_t megabytes)
{
    return filled(malloc(megabytes * MB), megabytes * MB);
}

/* Puts small, lasting blocks behind each buffer, so that the next buffer finds no room there. */
static void stay(void)
{
    for (int i = 0; i < 40; i++)
        filled(malloc(5000), 5000);
    filled(malloc(100000), 100000);
}

static long most_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        abort();
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = atol(line + 6);
    fclose(file);
    return kb;
}

static void *grows(void *unused)
{
    for (size_t size = 5; size <= 30; size += 5)
        free(made(size));
    return unused;
}

static pthread_barrier_t meeting;

/* Leaves the thread's stash full, and waits. */
static void *stashes(void *unused)
{
    void *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = made(1);
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return unused;
}

#define SMALL 600000
static char *small[SMALL];

/* Grows as the word says. Returns the most megabytes live ("sparse": touched) at once. */
static size_t grow(const char *how)
{
    if (strcmp(how, "alone") == 0 || strcmp(how, "apart") == 0) {
        for (size_t size = 40; size <= 120; size += 10) {
            char *block = made(size);
            if (strcmp(how, "apart") == 0)
                stay();
            free(block);
        }
        return 120;
    }
    if (strcmp(how, "one-by-one") == 0) {
        for (size_t size = 1; size <= 60; size++)
            free(made(size));
        return 60;
    }
    if (strcmp(how, "shrinking") == 0) {
        for (size_t size = 120; size >= 20; size -= 20)
            free(made(size));
        return 120;
    }
    if (strcmp(how, "calloc") == 0) {
        for (size_t size = 20; size <= 120; size += 10)
            free(filled(calloc(size, MB), size * MB));
        return 120;
    }
    if (strcmp(how, "memalign") == 0) {
        for (size_t size = 40; size <= 120; size += 10)
            free(filled(memalign(2 * MB, size * MB), size * MB));
        return 120;
    }
    if (strcmp(how, "realloc") == 0) {
        free(made(100));
        stay();
        char *block = made(2);
        for (size_t size = 10; size <= 120; size += 10)
            block = filled(realloc(block, size * MB), size * MB);
        free(block);
        return 120;
    }
    if (strcmp(how, "alternating") == 0) {
        char *one = made(20), *other = made(25);
        for (size_t size = 30; size <= 60; size += 10) {
            free(one);
            one = made(size);
            free(other);
            other = made(size + 5);
        }
        return 125;
    }
    if (strcmp(how, "beside-small") == 0) {
        for (int i = 0; i < SMALL; i++)
            small[i] = filled(malloc(150), 150);
        for (int i = 0; i < SMALL; i++)
            free(small[i]);
        for (size_t size = 20; size <= 120; size += 20)
            free(made(size));
        return 120;
    }
    if (strcmp(how, "threads") == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, grows, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        return 120;
    }
    if (strcmp(how, "beside-stashes") == 0) {
        pthread_t threads[8];
        pthread_barrier_init(&meeting, NULL, 9);
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, stashes, NULL);
        pthread_barrier_wait(&meeting);
        for (size_t size = 40; size <= 120; size += 20)
            free(made(size));
        pthread_barrier_wait(&meeting);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        return 120;
    }
    if (strcmp(how, "sparse") == 0) {
        /* Read buffers: the program uses a page or two of each. */
        for (int i = 0; i < 15000; i++)
            filled(malloc(i % 3 ? 30000 : 9000), 1000);
        return 15000 * 4096 / MB;
    }
    if (strcmp(how, "bursts") == 0) {
        free(made(20));
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        for (int i = 0; i < 20; i++)
            free(made(i % 2 ? 20 : 15));
        getrusage(RUSAGE_SELF, &after);
        /* Not each of the 90,000 pages was faulted in. */
        if (after.ru_minflt - before.ru_minflt > 200)
            exit(3);
        return 20;
    }
    exit(2);
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    if (count > 3) {
        rlim_t most = strtoul(words[3], NULL, 10) * MB;
        struct rlimit limit = { most, most };
        if (setrlimit(strcmp(words[2], "data") == 0 ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0)
            return 4;
    }
    size_t live = grow(words[1]);
    printf("%zu\n", (size_t)most_kb() * 100 / 1024 / live);
    return 0;
}
