/* Pressure on memory: `pressure thrash FILE` writes a file of 200 MB and reads it again and again,
 * in a control group that has no room for it. `pressure pause` frees 100 MB, continues to allocate
 * a little for seven seconds, and prints how many MB are in memory then. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)200 << 20)
#define BLOCKS 100

static char *blocks[BLOCKS];
static volatile long sum;

static int thrash(const char *path)
{
    char page[4096];
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (size_t at = 0; at < FILE_BYTES; at += sizeof page) {
        memset(page, (int)(at >> 12), sizeof page);
        if (write(file, page, sizeof page) != sizeof page)
            return 1;
    }
    char *mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return 1;
    for (;;)
        for (size_t at = 0; at < FILE_BYTES; at += sizeof page)
            sum += mapped[at];
}

static int pause_with_free_memory(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        if ((blocks[i] = malloc(1 << 20)) == NULL)
            return 1;
        memset(blocks[i], 1, 1 << 20);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    for (int i = 0; i < 700; i++) {
        usleep(10000);
        char *volatile some = malloc(50000 + (size_t)(i % 7) * 4096);
        some[0] = 1;
        free(some);
    }
    long all, resident;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%ld %ld", &all, &resident) != 2)
        return 1;
    printf("%ld\n", resident * (sysconf(_SC_PAGESIZE) / 1024) / 1024);
    return 0;
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "thrash") == 0)
        return thrash(words[2]);
    return pause_with_free_memory();
}
