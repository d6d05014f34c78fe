// golden: calls malloc, free and the sized operator delete. Each caller does nothing else, so callgrind's call edges name
// the functions, however the library aliases its symbols. For ci/golden.sh, callgrind writes its counts at each call of
// `part`: warm-up | 40 single rounds, a part each | 20,000 rounds in one part. This happens for malloc and free, for
// malloc and sized delete, and for malloc and a free by another thread. A round makes 8 blocks of different small sizes
// and frees them: a warm thread cache serves these without its slow path. An argument sets the size of all blocks.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

typedef void *(*new)(size_t);
typedef void (*sized_delete)(void *, size_t);

static size_t sizes[8] = {8, 16, 24, 48, 64, 100, 200, 400};
static void *blocks[8];
static new new_plain;
static sized_delete delete_sized;

__attribute__((noinline)) void part(void) { __asm__ volatile(""); }
__attribute__((noinline)) void call_malloc(int i) { blocks[i] = malloc(sizes[i]); }
__attribute__((noinline)) void call_new(int i) { blocks[i] = new_plain(sizes[i]); }
__attribute__((noinline)) void call_free(int i) { free(blocks[i]); }
__attribute__((noinline)) void call_delete(int i) { delete_sized(blocks[i], sizes[i]); }
__attribute__((noinline)) void call_remote(int i) { free(blocks[i]); }

static sem_t given, freed;
static void *frees_for_others(void *argument) {
    for (;;) {
        sem_wait(&given);
        for (int i = 0; i < 8; i++)
            call_remote(i);
        sem_post(&freed);
    }
    return argument;
}
// Called for each block of a round: the last call waits until the other thread has freed all.
static void give_away(int i) {
    if (i == 7) {
        sem_post(&given);
        sem_wait(&freed);
    }
}

static void rounds(long count, void (*make)(int), void (*give_back)(int)) {
    for (long r = 0; r < count; r++) {
        for (int i = 0; i < 8; i++)
            make(i);
        for (int i = 0; i < 8; i++)
            give_back(i);
    }
}

static void all(void (*make)(int), void (*give_back)(int)) {
    rounds(2000, make, give_back);
    for (int r = 0; r < 40; r++) {
        part();
        rounds(1, make, give_back);
    }
    part();
    rounds(20000, make, give_back);
    part();
}

int main(int count, char **arguments) {
    for (int i = 0; count > 1 && i < 8; i++)
        sizes[i] = strtoul(arguments[1], NULL, 10);
    new_plain = (new)dlsym(RTLD_DEFAULT, "_Znwm");
    delete_sized = (sized_delete)dlsym(RTLD_DEFAULT, "_ZdlPvm");
    all(call_malloc, call_free);
    if (new_plain != NULL && delete_sized != NULL)
        all(call_new, call_delete);
    pthread_t thread;
    if (sem_init(&given, 0, 0) == 0 && sem_init(&freed, 0, 0) == 0 && pthread_create(&thread, NULL, frees_for_others, NULL) == 0)
        all(call_malloc, give_away);
    return 0;
}
