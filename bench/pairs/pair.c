// pair [ROUNDS]: one block allocated and freed at once, again and again, at eight small
// sizes. Stands for temporaries: a string built to be compared, a boxed value
// that dies in the same function. The block is always the one freed last, so
// this is the length of the two fast paths and nothing else.

#include "pairs.h"

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 10 * 1000 * 1000;
    static const size_t sizes[8] = {16, 24, 40, 64, 100, 160, 256, 500};
    double start = now_ns();
    for (long i = 0; i < rounds; i++) {
        for (int s = 0; s < 8; s++) {
            char *volatile p = must(malloc(sizes[s]));
            p[0] = (char)i;
            free(p);
        }
    }
    report((now_ns() - start) / (8.0 * rounds));
    return 0;
}
