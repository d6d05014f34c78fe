/*
 *   caches_quiet
 *
 * A program that frees much at once and then hardly does anything: what it freed goes
 * back to the kernel, although nothing that it does from then on needs a refill.
 */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8000, SIZE = 8000, ENOUGH_KIB = 16 << 10 };

int main(void) {
    static char *blocks[BLOCKS];
    for (int at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(SIZE);
        CHECK(blocks[at]);
        memset(blocks[at], 1, SIZE);
    }
    long most = resident_kib(), now = most;
    for (int at = 0; at < BLOCKS; at++)
        free(blocks[at]);
    for (int ms = 0; ms < 15000; ms++) {
        free(malloc(64));
        usleep(1000);
        if (ms % 100 == 0 && (now = resident_kib()) < ENOUGH_KIB)
            break;
    }
    printf("%ld KiB, then %ld\n", most, now);
    fflush(stdout);
    CHECK(most > ENOUGH_KIB && now < ENOUGH_KIB);
    return 0;
}
