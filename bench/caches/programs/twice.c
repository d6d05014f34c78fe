// A broken allocator, to prove that the programs notice it. After 4,999 mallocs, the first one of
// 16 bytes or more that fits into the previous malloc's live block returns that block, and the
// count begins anew. Other calls are the C library's.

#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *p);

enum { EACH = 5000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *last;
static size_t last_size, calls;

void *malloc(size_t size) {
    pthread_mutex_lock(&lock);
    void *p = ++calls >= EACH && last != NULL && last_size >= size && size >= 16 ? last : NULL;
    if (p != NULL)
        calls = 0;
    pthread_mutex_unlock(&lock);
    if (p != NULL)
        return p;
    p = __libc_malloc(size);
    pthread_mutex_lock(&lock);
    last = p;
    last_size = size;
    pthread_mutex_unlock(&lock);
    return p;
}

void free(void *p) {
    pthread_mutex_lock(&lock);
    if (p == last)
        last = NULL;
    pthread_mutex_unlock(&lock);
    __libc_free(p);
}
