// batch [ROUNDS]: 256 blocks of one size are allocated, then freed, half the rounds in
// the order of allocation, half in the reverse order; sizes change from round
// to round. Stands for a request handled: its objects are made together and
// dropped together. Shows what refilling and flushing a thread's lists costs.

#include "pairs.h"

enum { BATCH = 256 };

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 200 * 1000;
    static const size_t sizes[6] = {16, 32, 48, 80, 128, 400};
    static char *blocks[BATCH];
    double start = now_ns();
    for (long i = 0; i < rounds; i++) {
        size_t size = sizes[i % 6];
        for (int b = 0; b < BATCH; b++) {
            blocks[b] = must(malloc(size));
            blocks[b][0] = (char)b;
        }
        if (i & 1) {
            for (int b = 0; b < BATCH; b++)
                free(blocks[b]);
        } else {
            for (int b = BATCH; b-- > 0;)
                free(blocks[b]);
        }
    }
    report((now_ns() - start) / ((double)BATCH * rounds));
    return 0;
}
