// limits MODE: small programs for ci/limits.sh, each of which must end with
// status 0 however tight the machine is made around it.
//
//   work      three threads make, check, grow and free blocks of all sizes
//   exhaust   memory is used up, large then small; malloc says so with a null
//             and ENOMEM, and serves again once blocks were freed
//   lock      mlockall of all present and future memory, then work; the program
//             must stay small: a reservation must not become resident
//   self      limits its own address space while running, then works in one
//             thread: what malloc reserved before must go on serving
//   fill MB   that many megabytes fit at least, in blocks of 100,000 bytes; once they
//             are free, a thread with a stack of the usual size starts
//   mixed     the same with blocks of 5 KB to 3 MB of which any number fit, twice, and
//             blocks that grow and shrink at the limit keep their contents
//   share     prints how many megabytes fit in blocks of 100,000 bytes
//   answers   what malloc(0) and posix_memalign say
//   more      malloc of more than the machine has is refused where the kernel refuses
//             such a mapping, and only there
//   crash     makes blocks and aborts (for the size of the core file)

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

static void fail(const char *why) {
    fprintf(stderr, "limits: %s\n", why);
    exit(1);
}

static void *work(void *argument) {
    enum { LIVE = 2000 };
    unsigned seed = (unsigned)(uintptr_t)argument + 1;
    static __thread unsigned char *blocks[LIVE];
    static __thread size_t sizes[LIVE];
    for (int i = 0; i < 60000; i++) {
        seed = seed * 1103515245 + 12345;
        int at = seed / 65536 % LIVE;
        unsigned char *old = blocks[at];
        if (old != NULL && (old[0] != (unsigned char)at || old[sizes[at] - 1] != (unsigned char)at))
            fail("a block changed while it was held");
        size_t size = 1 + seed / 7 % 600;
        if (i % 500 == 0)
            size = 100000 + seed % 400000;
        unsigned char *block;
        if (i % 3 == 0) {
            block = realloc(old, size);
        } else {
            free(old);
            block = i % 7 == 0 ? aligned_alloc(256, (size + 255) & ~(size_t)255) : malloc(size);
        }
        if (block == NULL)
            fail("out of memory with little in use");
        if (i % 7 == 0 && i % 3 != 0 && (uintptr_t)block % 256 != 0)
            fail("a block is not aligned");
        block[0] = block[size - 1] = (unsigned char)at;
        blocks[at] = block;
        sizes[at] = size;
        // Large blocks do not stay: the whole must fit in tight limits.
        if (size > 100000) {
            free(block);
            blocks[at] = NULL;
        }
    }
    for (int i = 0; i < LIVE; i++)
        free(blocks[i]);
    return NULL;
}

static void work_in_threads(void) {
    pthread_t threads[3];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    for (uintptr_t t = 0; t < 3; t++)
        if (pthread_create(&threads[t], &small, work, (void *)t) != 0)
            fail("cannot start a thread");
    for (int t = 0; t < 3; t++)
        pthread_join(threads[t], NULL);
    work((void *)3);
}

static void exhaust(size_t size) {
    void **list = NULL, **block;
    long count = 0;
    errno = 0;
    while ((block = malloc(size)) != NULL) {
        // Touch the first word only: the limit is on address space or commit.
        *block = list;
        list = block;
        if (++count > 100 * 1000 * 1000)
            fail("there is no limit");
    }
    if (errno != ENOMEM)
        fail("malloc returned null without ENOMEM");
    if (count < 10)
        fail("out of memory at once");
    // A failed realloc leaves the block as it was.
    if (realloc(list, (size_t)1 << 46) != NULL || errno != ENOMEM || calloc((size_t)1 << 23, (size_t)1 << 23) != NULL)
        fail("64 TiB were found in a full heap");
    while (list != NULL) {
        void **next = *list;
        free(list);
        list = next;
    }
    void *again = malloc(size);
    if (again == NULL)
        fail("freed memory does not come back");
    free(again);
}

static void *nothing(void *argument) { return argument; }

static void start_a_thread(void) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, nothing, NULL);
    if (error != 0) {
        fprintf(stderr, "limits: pthread_create says %d after all was freed\n", error);
        exit(1);
    }
    pthread_join(thread, NULL);
}

// Takes blocks of `least` to `most` bytes until there are no more, and checks them as it
// gives them back. Returns bytes.
static size_t take_all(size_t least, size_t most) {
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
    if (count == MOST || errno != ENOMEM)
        fail("malloc returned no null, or one without ENOMEM");
    // At the limit blocks have no memory behind their last byte: those that grow and shrink
    // must have it, or be refused and stay as they are.
    for (size_t i = 0; i < count; i += 3) {
        unsigned char *larger = realloc(blocks[i], sizes[i] + 3000);
        if (larger != NULL) {
            memset(larger + sizes[i], 0x5a, 3000);
            blocks[i] = realloc(larger, sizes[i] -= sizes[i] / 3);
            if (blocks[i] == NULL)
                fail("a block could not shrink");
            blocks[i][sizes[i] - 1] = (unsigned char)i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (blocks[i][0] != (unsigned char)i || blocks[i][sizes[i] - 1] != (unsigned char)i)
            fail("a block changed while it was held");
        free(blocks[i]);
    }
    return total;
}

static void fill(size_t megabytes) {
    size_t total = take_all(100000, 100000);
    if (total < megabytes * 1000000) {
        fprintf(stderr, "limits: %zu MB fit, not %zu\n", total / 1000000, megabytes);
        exit(1);
    }
    start_a_thread();
}

static void mixed(void) {
    size_t first = take_all(5000, 3000000);
    start_a_thread();
    size_t second = take_all(5000, 3000000);
    start_a_thread();
    // The C library keeps the stack.
    if (second + (24 << 20) < first)
        fail("what was freed does not fit again");
}

static void answers(void) {
    // Through pointers, for compilers know what POSIX says of the names.
    int (*volatile memalign_at)(void **, size_t, size_t) = posix_memalign;
    void *(*volatile allocate)(size_t) = malloc;
    void *block = &block;
    errno = 11;
    if (memalign_at(&block, 64, (size_t)1 << 62) != ENOMEM || errno != ENOMEM || block != &block)
        fail("posix_memalign without memory is not as in glibc");
    errno = 11;
    if (memalign_at(&block, 24, 64) != EINVAL || errno != 11 || block != &block)
        fail("posix_memalign of a wrong alignment is not as in glibc");
    for (int i = 0; i < 100; i++) {
        block = allocate(0);
        size_t usable = malloc_usable_size(block);
        if (usable == 0 || malloc_usable_size(block) != usable)
            fail("nothing may be used of malloc(0)");
        memset(block, 1, usable);
        free(block);
    }
}

static void more(void) {
    struct sysinfo info;
    sysinfo(&info);
    size_t all = (info.totalram + info.totalswap) * info.mem_unit;
    size_t size = all + all / 4;
    void *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int granted = mapping != MAP_FAILED;
    if (granted)
        munmap(mapping, size);
    void *(*volatile allocate)(size_t) = malloc;
    for (int i = 0; i < 2; i++) {
        errno = 0;
        char *block = allocate(size);
        if ((block != NULL) != granted || (block == NULL && errno != ENOMEM)) {
            fprintf(stderr, "limits: the kernel %s %zu bytes, malloc does not\n", granted ? "grants" : "refuses", size);
            exit(1);
        }
        if (block != NULL)
            block[0] = block[size - 1] = 1;
        free(block);
        block = allocate(1 << 20);
        char *larger = realloc(block, size);
        if ((larger != NULL) != granted)
            fail("realloc does not answer as malloc does");
        free(larger != NULL ? larger : block);
    }
    // What fits is served.
    char *half = allocate(all / 2);
    if (half == NULL)
        fail("half of the machine is refused");
    free(half);
}

static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "work";
    if (strcmp(mode, "exhaust") == 0) {
        exhaust(1 << 20);
        exhaust(100);
        exhaust(30000);
        exhaust(1 << 20);
    } else if (strcmp(mode, "lock") == 0) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
            fail("mlockall failed");
        work_in_threads();
        if (resident_kib() > 64 * 1024) {
            fprintf(stderr, "limits: %ld KiB are resident\n", resident_kib());
            return 1;
        }
    } else if (strcmp(mode, "fill") == 0) {
        fill(strtoul(argv[2], NULL, 10));
    } else if (strcmp(mode, "share") == 0) {
        printf("%zu\n", take_all(100000, 100000) / 1000000);
        return 0;
    } else if (strcmp(mode, "mixed") == 0) {
        mixed();
    } else if (strcmp(mode, "answers") == 0) {
        answers();
    } else if (strcmp(mode, "more") == 0) {
        more();
    } else if (strcmp(mode, "self") == 0) {
        struct rlimit limit = {200 << 20, 200 << 20};
        free(malloc(1000));
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            fail("setrlimit failed");
        work((void *)1);
    } else {
        work_in_threads();
        if (strcmp(mode, "crash") == 0)
            abort();
    }
    puts("done");
    return 0;
}
