// guards WHAT SIZE: makes one mistake with a block of that size. `right-WHAT` does the same without
// the mistake.
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapwright.h"

// The library is preloaded.
#pragma weak hw_owns
#pragma weak hw_describe
#pragma weak hw_heap_walk

static volatile char seen;
// Hides the count from the compiler, which would unroll the loop into two call sites.
static volatile int both = 2;

__attribute__((noinline)) static char *make(size_t size) {
    char *block = malloc(size);
    CHECK(block);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static void drop(void *block) {
    free(block);
}

static void *drop_in_thread(void *block) {
    drop(block);
    return NULL;
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    _exit(7);
}

static bool is_found;
static bool look(const hw_block *block, void *wanted) {
    is_found |= block->address == wanted && block->in_use;
    return true;
}

int main(int count, char **words) {
    CHECK(count == 3);
    const char *what = words[1];
    size_t size = strtoul(words[2], NULL, 10);
    int right = !strncmp(what, "right-", 6);
    what += right ? 6 : 0;
#define IS(name) (!strcmp(what, name))
    // The first two blocks of a call site stand at different ends of their pages.
    char *blocks[2];
    for (int i = 0; i < both; i++)
        blocks[i] = make(size);
    char *block = blocks[0];
    size_t behind = (size + 15) & ~(size_t)15;
    if (IS("overflow-read") || IS("overflow-write")) {
        for (int i = 0; i < 2; i++)
            if (IS("overflow-read"))
                seen = blocks[i][right ? size - 1 : behind];
            else
                blocks[i][right ? size - 1 : behind] = 2;
    } else if (IS("underflow-read") || IS("underflow-write")) {
        for (int i = 0; i < 2; i++)
            if (IS("underflow-read"))
                seen = blocks[i][right ? 0 : -1];
            else
                blocks[i][right ? 0 : -1] = 2;
    } else if (IS("late")) {
        // The write does not reach the guard. It is found when the block is freed, or at the end.
        block[right ? size - 1 : size] = 2;
        drop(block);
        blocks[1][right ? 0 : size] = 3;
    } else if (IS("read-after-free") || IS("write-after-free")) {
        if (!right)
            drop(block);
        if (IS("read-after-free"))
            seen = block[size / 2];
        else
            block[size - 1] = 2;
    } else if (IS("freed-by-another-thread")) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, drop_in_thread, right ? blocks[1] : block));
        CHECK(!pthread_join(thread, NULL));
        seen = block[0];
    } else if (IS("double-free")) {
        drop(block);
        drop(right ? blocks[1] : block);
    } else if (IS("interior-free")) {
        drop(block + (right ? 0 : size / 2));
    } else if (IS("realloc-after-free")) {
        drop(block);
        drop(realloc(right ? blocks[1] : block, 2 * size));
    } else if (IS("handled")) {
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
        CHECK(!sigaction(SIGSEGV, &action, NULL));
        drop(block);
        if (right)
            _exit(7);
        seen = block[0];
    } else if (IS("in-a-child")) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            char *own = make(size);
            drop(own);
            drop(block);
            seen = (right ? blocks[1] : block)[0];
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(right ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        CHECK(block[0] == 1);
    } else if (IS("shares")) {
        // Counts the guarded blocks of two kinds of calls that alternate, in 100,000 calls.
        int guarded[2] = {0, 0};
        for (int i = 0; i < 100000; i++) {
            void *one = i % 2 ? malloc(size) : calloc(1, size);
            CHECK(one);
            guarded[i % 2] += hw_describe(one).kind == HW_KIND_DEBUG;
        }
        printf("%d %d\n", guarded[0], guarded[1]);
    } else if (IS("everything")) {
        CHECK(malloc_usable_size(block) == size);
        CHECK(hw_owns(block));
        hw_description about = hw_describe(block + size - 1);
        CHECK(about.block == block && about.size == size && about.offset == size - 1);
        hw_heap_walk(look, block);
        CHECK(is_found);
        block = realloc(block, 3 * size);
        CHECK(block);
        for (size_t i = 0; i < size; i++)
            CHECK(block[i] == 1);
        drop(block);
        block = calloc(3, size);
        CHECK(block);
        for (size_t i = 0; i < 3 * size; i++)
            CHECK(!block[i]);
        drop(block);
        for (size_t align = 8; align <= 1 << 16; align *= 2) {
            void *aligned;
            CHECK(!posix_memalign(&aligned, align, size));
            CHECK((size_t)aligned % align == 0);
            memset(aligned, 3, size);
            drop(aligned);
        }
        CHECK(malloc_usable_size(malloc(0)) <= 16);
    } else {
        CHECK(!"a known word");
    }
    puts("end");
    return 0;
}
