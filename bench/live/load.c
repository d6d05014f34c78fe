/* A load that is watched: `load SECONDS` replaces blocks of 16 to 2000 bytes, 100,000 of them live.
 * After each tenth of the time it prints the nanoseconds of a replacement. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 100000, MOST = 2000 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    double seconds = count > 1 ? atof(words[1]) : 10;
    static char *blocks[BLOCKS];
    uint64_t state = 88172645463325252;
    for (int part = 0; part < 10; part++) {
        double began = now(), until = began + seconds / 10;
        long done = 0;
        while (now() < until) {
            for (int i = 0; i < 1000; i++, done++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                size_t at = (state >> 16) % BLOCKS, size = 16 + (state >> 40) % (MOST - 16);
                free(blocks[at]);
                blocks[at] = malloc(size);
                memset(blocks[at], 1, 16);
            }
        }
        printf("%.2f\n", (now() - began) * 1e9 / done);
    }
    return 0;
}
