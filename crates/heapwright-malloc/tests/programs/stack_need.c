/*
 *   stack_need LIMIT        (compiled with -pthread)
 *
 * Measures the stack that each entry point takes. Each is called on a freshly painted stack,
 * above an inaccessible page. The lowest changed byte shows the need. Prints the most for each, and
 * fails if an entry point takes more than LIMIT bytes.
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { STACK = 64 << 10, PAINT = 0xa7, BLOCKS = 4096 };

void *_Znwm(size_t) __attribute__((weak));
void _ZdlPvm(void *, size_t) __attribute__((weak));
void *_ZnwmSt11align_val_t(size_t, size_t) __attribute__((weak));
void _ZdlPvSt11align_val_t(void *, size_t) __attribute__((weak));

static unsigned char *stack;
static ucontext_t caller, callee;
static void *volatile block;
static volatile size_t size, other;
static void *volatile blocks[BLOCKS];
static void (*volatile work)(void);

/* The calls come last on the painted stack, so the bytes are theirs, but for some words. */
static void do_malloc(void) { block = malloc(size); }
static void do_calloc(void) { block = calloc(1, size); }
static void do_realloc(void) { block = realloc(block, other); }
static void do_aligned(void) { block = aligned_alloc(4096, size); }
static void do_memalign(void) { void *got = NULL; block = posix_memalign(&got, 256, size) ? NULL : got; }
static void do_usable(void) { other = malloc_usable_size(block); }
static void do_free(void) { free(block); }
static void do_new(void) { block = _Znwm(size); }
static void do_delete(void) { _ZdlPvm(block, size); }
static void do_new_aligned(void) { block = _ZnwmSt11align_val_t(size, 64); }
static void do_delete_aligned(void) { _ZdlPvSt11align_val_t(block, 64); }
static void do_many(void)
{
    for (int at = 0; at < BLOCKS; at++)
        blocks[at] = malloc(size);
}
static void do_free_many(void)
{
    for (int at = 0; at < BLOCKS; at++)
        free(blocks[at]);
}
static void do_nothing(void) {}

static void run(void) { work(); }

static size_t measure(void (*what)(void))
{
    memset(stack, PAINT, STACK);
    CHECK(getcontext(&callee) == 0);
    callee.uc_stack.ss_sp = stack;
    callee.uc_stack.ss_size = STACK;
    callee.uc_link = &caller;
    makecontext(&callee, run, 0);
    work = what;
    CHECK(swapcontext(&caller, &callee) == 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    return STACK - untouched;
}

static struct { const char *name; size_t most; } needs[64];
static size_t nothing;

static void note(const char *name, void (*what)(void))
{
    size_t need = measure(what) - nothing;
    for (int at = 0; at < 64; at++) {
        if (needs[at].name == NULL)
            needs[at].name = name;
        if (!strcmp(needs[at].name, name)) {
            if (needs[at].most < need)
                needs[at].most = need;
            return;
        }
    }
}

static void wait_ms(long ms)
{
    struct timespec time = { 0, ms * 1000000 };
    nanosleep(&time, NULL);
}

static void pairs(size_t bytes)
{
    size = bytes;
    note("malloc", do_malloc);
    note("malloc_usable_size", do_usable);
    note("free", do_free);
    note("calloc", do_calloc);
    other = bytes * 2 + 1;
    note("realloc", do_realloc);
    other = bytes / 2 + 1;
    note("realloc", do_realloc);
    note("free", do_free);
    note("aligned_alloc", do_aligned);
    note("free", do_free);
    note("posix_memalign", do_memalign);
    note("free", do_free);
    if (_Znwm) {
        note("operator new", do_new);
        note("operator delete", do_delete);
        note("operator new, aligned", do_new_aligned);
        note("operator delete, aligned", do_delete_aligned);
    }
}

static void each_size(void)
{
    static const size_t sizes[] = { 0, 1, 24, 100, 1000, 5000, 40000, 300000, 3000000 };
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++)
        pairs(sizes[at]);
    /* Full lists, returned slabs, and pages that go back. */
    static const size_t many[] = { 16, 200, 3000, 20000 };
    for (int round = 0; round < 2; round++)
        for (size_t at = 0; at < sizeof many / sizeof *many; at++) {
            size = many[at];
            note("malloc", do_many);
            note("free", do_free_many);
            wait_ms(30);
            pairs(100);
        }
}

static void *in_thread(void *first)
{
    size = (size_t)first;
    note(size ? "malloc, first in a thread" : "free, first in a thread", size ? do_malloc : do_free);
    if (size)
        note("free", do_free);
    each_size();
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    unsigned char *mapped = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED && mprotect(mapped, 4096, PROT_NONE) == 0);
    stack = mapped + 4096;
    nothing = measure(do_nothing);
    /* Before any other code requests memory here. */
    size = 100;
    note("malloc", do_malloc);
    each_size();
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        block = malloc(100);
        CHECK(pthread_create(&thread, NULL, in_thread, (void *)(round ? 0 : (size_t)100)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    size_t limit = strtoul(argv[1], NULL, 10), worst = 0;
    for (int at = 0; at < 64 && needs[at].name; at++) {
        printf("%-28s %zu\n", needs[at].name, needs[at].most);
        worst = needs[at].most > worst ? needs[at].most : worst;
    }
    fflush(stdout);
    CHECK(worst <= limit);
    return 0;
}
