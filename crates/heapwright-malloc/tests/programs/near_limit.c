/* Holds 62 MB, frees 40 MB, and allocates a little for a while. Prints the resident MB at the end.
 * With the word "set" it sets the limit of 64 MB itself. With "far" no memory is expected to go
 * back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 1000
#define BLOCKS 62000
static char *blocks[BLOCKS];

static long resident_mb(void)
{
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2)
        abort();
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "set") == 0) {
        void (*set)(size_t);
        *(void **)&set = dlsym(RTLD_DEFAULT, "hw_set_soft_limit");
        if (set == NULL)
            return 1;
        set((size_t)64 << 20);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if ((blocks[i] = malloc(BLOCK)) == NULL)
            return 2;
        memset(blocks[i], 1, BLOCK);
    }
    for (int i = 0; i < 40000; i++)
        free(blocks[i]);
    /* Waits as long as a busy machine takes, up to three seconds. */
    int most = count > 1 && strcmp(words[1], "far") == 0 ? 100 : 600;
    for (int i = 0; i < most && (i < 100 || resident_mb() >= 45); i++) {
        usleep(5000);
        free(malloc(BLOCK));
    }
    printf("%ld\n", resident_mb());
    return 0;
}
