// grow MIB ROUNDS: two vectors grow side by side by doubling-and-a-half steps
// to MIB mebibytes each, every new byte written. Stands for buffers read to
// the end of a stream and for tables that double. Growing in place or moving
// pages (mremap) beats copying, and two vectors that grow in turn keep either
// from simply owning the end of the heap.

#include "workload.h"

int main(int argc, char **argv) {
    size_t limit = (argc > 1 ? strtoull(argv[1], NULL, 10) : 96) << 20;
    long rounds = argc > 2 ? atol(argv[2]) : 4;
    double start = now_ns();
    for (long r = 0; r < rounds; r++) {
        char *vectors[2] = {NULL, NULL};
        size_t old = 0, size = 64;
        while (old < limit) {
            for (int v = 0; v < 2; v++) {
                vectors[v] = must(realloc(vectors[v], size));
                if (old != 0 && vectors[v][old - 1] != (char)(v + 1)) {
                    fprintf(stderr, "realloc lost the contents\n");
                    return 1;
                }
                memset(vectors[v] + old, v + 1, size - old);
            }
            old = size;
            size += size / 2;
            if (size > limit)
                size = limit;
        }
        free(vectors[0]);
        free(vectors[1]);
    }
    report("ms/round", (now_ns() - start) / 1e6 / rounds);
    return 0;
}
