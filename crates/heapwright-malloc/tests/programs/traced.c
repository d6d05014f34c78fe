/*
 *   traced OFFSET FILE
 *
 * Acts like a tracer that attaches to the probes of samples: adds 1 to the semaphore, OFFSET bytes
 * into the library. From then on blocks are sampled, until the tracer leaves. FILE is for profiles.
 */
#include "check.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <heapwright.h>
#include <sys/stat.h>

static void *volatile blocks[2000];

/* The present length of the profile. */
static long profile_bytes(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct stat about;
    CHECK(file >= 0 && hw_profile_write(file) && fstat(file, &about) == 0);
    close(file);
    return (long)about.st_size;
}

/* Waits some ticks, and allocates and frees 80 MB. */
static void go_on(void)
{
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 2000; i++)
            CHECK((blocks[i] = malloc(4000)) != NULL);
        usleep(10000);
        for (int i = 0; i < 2000; i++)
            free(blocks[i]);
    }
}

int main(int count, char **words)
{
    CHECK(count == 3);
    Dl_info library;
    CHECK(dladdr((void *)(uintptr_t)&hw_version, &library) != 0);
    volatile unsigned short *semaphore =
        (volatile unsigned short *)((char *)library.dli_fbase + strtoul(words[1], NULL, 16));
    CHECK(*semaphore == 0);
    go_on();
    long before = profile_bytes(words[2]);
    *semaphore = 1;
    go_on();
    void *kept = malloc(8 << 20);
    long during = profile_bytes(words[2]);
    CHECK(kept != NULL && during > before);
    *semaphore = 0;
    go_on();
    long after = profile_bytes(words[2]);
    void *unseen = malloc(8 << 20);
    /* A site has some 300 bytes. Some points in time may have come since. */
    CHECK(unseen != NULL && profile_bytes(words[2]) < after + 200);
    free(kept);
    free(unseen);
    return 0;
}
