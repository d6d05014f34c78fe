/*
 * Guarantees near the end of memory. tests/limits.rs limits the program from outside.
 *
 *   fill MB   that many megabytes fit at least, in blocks of 100,000 bytes; once they are free, a
 *             thread with a stack of the usual size starts
 *   mixed     the same with blocks of 5 KB to 3 MB of which any number fit, twice; blocks that grow
 *             and shrink at the limit keep their contents
 *   longer MB blocks of 10 MB, 20 MB and so on up to that many megabytes fit, each after the
 *             previous block was freed
 *   share     prints how many megabytes fit in blocks of 100,000 bytes
 *   recover RESOURCE MB SIZE
 *             sets a limit (MB > 0), fills memory with blocks of SIZE bytes, and frees them: then
 *             blocks of all sizes succeed, and a quarter fits in blocks of two sizes in turn
 *   lock      mlockall succeeds for a user who may lock 400 MB
 *   answers   the results of malloc(0) and posix_memalign
 *   more      malloc of more than the machine has is refused where the kernel refuses such a
 *             mapping, and only there
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

static void *nothing(void *argument) { return argument; }

static void start_a_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Takes blocks of `least` to `most` bytes until there are no more, and checks them when it frees
 * them. Returns the bytes. */
static size_t take_all(size_t least, size_t most)
{
    enum { MOST = 20000 };
    static unsigned char *blocks[MOST];
    static size_t sizes[MOST];
    size_t count = 0, total = 0;
    unsigned seed = 1;
    for (; count < MOST; count++) {
        seed = seed * 1103515245 + 12345;
        size_t size = least + (most > least ? seed / 16 % (most - least) : 0);
        if ((blocks[count] = malloc(size)) == NULL)
            break;
        blocks[count][0] = blocks[count][size - 1] = (unsigned char)count;
        sizes[count] = size;
        total += size;
    }
    CHECK(count < MOST && errno == ENOMEM);
    /* At the limit blocks have no memory behind their last byte. A block that grows or shrinks must
     * get that memory, or be refused and stay as it is. */
    for (size_t i = 0; i < count; i += 3) {
        unsigned char *larger = realloc(blocks[i], sizes[i] + 3000);
        if (larger) {
            memset(larger + sizes[i], 0x5a, 3000);
            blocks[i] = realloc(larger, sizes[i] -= sizes[i] / 3);
            CHECK(blocks[i] != NULL);
            blocks[i][sizes[i] - 1] = (unsigned char)i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        CHECK(blocks[i][0] == (unsigned char)i && blocks[i][sizes[i] - 1] == (unsigned char)i);
        free(blocks[i]);
    }
    return total;
}

static void mixed(void)
{
    size_t first = take_all(5000, 3000000);
    start_a_thread();
    size_t second = take_all(5000, 3000000);
    start_a_thread();
    /* The C library keeps the stack. */
    CHECK(second + (24 << 20) >= first);
}

/* Returns the bytes that fit in blocks of `size` bytes, and frees the blocks. Notes the places of
   64 of them. */
static size_t fill_with(size_t size, char **places)
{
    void **last = NULL, **block;
    size_t total = 0;
    for (; (block = malloc(size)) != NULL; total += size) {
        *block = last;
        last = block;
        places[total / size * 9 % 64] = (char *)((uintptr_t)block & -65536);
    }
    CHECK(errno == ENOMEM && last != NULL);
    /* What a few blocks give back is enough for another one, if slots are used again. */
    const char *options = getenv("HEAPWRIGHT");
    if (options == NULL || strcmp(options, "mode=debug") != 0) {
        for (int n = 0; n < 8; n++) {
            block = last;
            last = *block;
            free(block);
        }
        CHECK((block = malloc(size)) != NULL);
        free(block);
    }
    while ((block = last) != NULL) {
        last = *block;
        free(block);
    }
    return total;
}

/* Maps memory where blocks were, if the heap gave the addresses back. */
static void map_at(char **places)
{
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    for (int n = 0; n < 64; n++)
        mmap(places[n], 4096, PROT_NONE, how, -1, 0);
}

static void limit(int resource, size_t megabytes)
{
    struct rlimit limit = {megabytes << 20, megabytes << 20};
    CHECK(megabytes == 0 || setrlimit(resource, &limit) == 0);
}

static void recover(int resource, size_t megabytes, size_t size)
{
    free(malloc(100));
    limit(resource, megabytes);
    char *places[64] = {0}, *others[64];
    size_t first = fill_with(size, places);
    static const size_t sizes[] = {16, 64, 1000, 30000, 100000, 1000000};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        void *block = malloc(sizes[n]);
        CHECK(block != NULL);
        free(block);
    }
    CHECK(first >= 20 << 20);
    for (int round = 0; round < 4; round++) {
        CHECK(fill_with(2 * size, others) >= first / 4);
        map_at(places);
        CHECK(fill_with(size, places) >= first / 4);
    }
}

static void lock(void)
{
    if (geteuid() != 0)
        return;
    free(malloc(100));
    limit(RLIMIT_MEMLOCK, 400);
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(mlockall(MCL_CURRENT) == 0);
    for (size_t size = 10; size < 1000000; size += size / 2)
        CHECK(malloc(size) != NULL);
}

/* Calls go through pointers, because compilers know what POSIX says of the names. */
static int (*volatile memalign_at)(void **, size_t, size_t) = posix_memalign;
static void *(*volatile allocate)(size_t) = malloc;

static void answers(void)
{
    void *block = &block;
    errno = 11;
    CHECK(memalign_at(&block, 64, (size_t)1 << 62) == ENOMEM && errno == ENOMEM && block == &block);
    errno = 11;
    CHECK(memalign_at(&block, 24, 64) == EINVAL && errno == 11 && block == &block);
    for (int i = 0; i < 100; i++) {
        block = allocate(0);
        size_t usable = malloc_usable_size(block);
        CHECK(usable != 0 && malloc_usable_size(block) == usable);
        memset(block, 1, usable);
        free(block);
    }
}

static void more(void)
{
    struct sysinfo info;
    CHECK(sysinfo(&info) == 0);
    size_t all = (info.totalram + info.totalswap) * info.mem_unit;
    size_t size = all + all / 4;
    int access = PROT_READ | PROT_WRITE;
    void *mapping = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int granted = mapping != MAP_FAILED;
    if (granted)
        munmap(mapping, size);
    for (int i = 0; i < 2; i++) {
        errno = 0;
        char *block = allocate(size);
        CHECK((block != NULL) == granted && (block || errno == ENOMEM));
        if (block)
            block[0] = block[size - 1] = 1;
        free(block);
        block = allocate(1 << 20);
        char *larger = realloc(block, size);
        CHECK((larger != NULL) == granted);
        free(larger ? larger : block);
    }
    /* A request that fits succeeds. */
    char *half = allocate(all / 2);
    CHECK(half != NULL);
    free(half);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    if (!strcmp(argv[1], "fill")) {
        CHECK(take_all(100000, 100000) >= strtoul(argv[2], NULL, 10) * 1000000);
        start_a_thread();
    } else if (!strcmp(argv[1], "longer")) {
        for (size_t megabytes = 10; megabytes <= strtoul(argv[2], NULL, 10); megabytes += 10) {
            char *block = malloc(megabytes << 20);
            CHECK(block);
            memset(block, 1, megabytes << 20);
            free(block);
        }
    } else if (!strcmp(argv[1], "share")) {
        printf("%zu\n", take_all(100000, 100000) / 1000000);
    } else if (!strcmp(argv[1], "recover")) {
        recover(argv[2][0] == 'v' ? RLIMIT_AS : RLIMIT_DATA, strtoul(argv[3], NULL, 10),
                strtoul(argv[4], NULL, 10));
    } else if (!strcmp(argv[1], "lock")) {
        lock();
    } else if (!strcmp(argv[1], "mixed")) {
        mixed();
    } else if (!strcmp(argv[1], "answers")) {
        answers();
    } else {
        more();
    }
    return 0;
}
