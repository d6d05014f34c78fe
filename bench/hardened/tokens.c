/*
 * What clang's allocation tokens cost: tokens PAIRS SIZES, with the token in the name.
 *
 *   cc -O2 -fno-builtin -o tokens bench/hardened/tokens.c
 *   HEAPWRIGHT=mode=hardened:full LD_PRELOAD=... valgrind --tool=callgrind ./tokens 10000 0
 *   HEAPWRIGHT=mode=hardened:full LD_PRELOAD=... ./tokens 0 20
 *
 * makes and frees so many blocks of 48 bytes, one after the other; then makes blocks of so many sizes, 16 bytes apart, in
 * each of four groups (TOKENS=0: as many, without tokens), and prints how much is resident.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__attribute__((weak)) __alloc_token_0_malloc(size_t);
void *__attribute__((weak)) __alloc_token_1_malloc(size_t);
void *__attribute__((weak)) __alloc_token_2_malloc(size_t);
void *__attribute__((weak)) __alloc_token_3_malloc(size_t);

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    static void *(*made[4])(size_t);
    int tokens = !getenv("TOKENS") || atoi(getenv("TOKENS")), pairs = atoi(words[1]), sizes = atoi(words[2]);
    for (int group = 0; group < 4; group++) {
        void *(*const of[])(size_t) = {__alloc_token_0_malloc, __alloc_token_1_malloc, __alloc_token_2_malloc,
                                       __alloc_token_3_malloc};
        made[group] = tokens && of[group] ? of[group] : malloc;
    }
    for (int i = 0; i < pairs; i++)
        free(made[i % 4](48));
    for (int size = 1; size <= sizes; size++)
        for (int i = 0; i < 40; i++)
            memset(made[i % 4]((size_t)size * 16 - 8), 1, (size_t)size * 16 - 8);
    if (sizes) {
        char line[128];
        FILE *status = fopen("/proc/self/status", "r");
        while (status && fgets(line, sizeof line, status))
            if (!strncmp(line, "RssAnon", 7))
                fputs(line, stdout);
    }
    return 0;
}
