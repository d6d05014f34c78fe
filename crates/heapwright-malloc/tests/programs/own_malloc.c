/* A program with an allocator of its own: the program continues to use that. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

static _Alignas(16) char pool[16 << 20];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_size_t mallocs, frees;

static int is_mine(void *p) { return (char *)p >= pool && (char *)p < pool + sizeof pool; }

void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    size_t at = used;
    used += (size + 31) / 16 * 16;
    CHECK(used < sizeof pool);
    *(size_t *)(pool + at) = size;
    mallocs++;
    pthread_mutex_unlock(&lock);
    return pool + at + 16;
}

void free(void *p)
{
    if (!p)
        return;
    CHECK(is_mine(p));
    frees++;
}

void *calloc(size_t n, size_t size)
{
    void *p = malloc(n * size);
    memset(p, 0, n * size);
    return p;
}

void *realloc(void *p, size_t size)
{
    void *q = malloc(size);
    if (p) {
        size_t old = ((size_t *)p)[-2];
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}

static void *thread(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        char *p = strdup("from the C library");
        CHECK(is_mine(p));
        free(p);
    }
    return argument;
}

int main(void)
{
    void *p = malloc(100);
    CHECK(is_mine(p));
    free(p);
    char *text = NULL;
    CHECK(asprintf(&text, "%d", 12345) == 5 && is_mine(text));
    free(text);
    char *line = NULL;
    size_t length = 0;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f != NULL);
    while (getline(&line, &length, f) > 0)
        CHECK(is_mine(line));
    fclose(f);
    free(line);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(mallocs >= 8000 && frees >= 8000);
    return 0;
}
