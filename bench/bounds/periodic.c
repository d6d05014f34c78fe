// periodic NAME PAUSE_MS PERIODS
//
// A program that works in bursts. In each it allocates 48 MiB in blocks of 16 bytes to 512 KiB,
// frees nine in ten, and pauses. It frees the other blocks before the next burst.
//
// Another process first runs the same with purge=never. The figure is the page faults of this
// process, at most 1.1 times those of the other process. Then this process replaces a block every 2
// ms for ten seconds. Figure: the share that is left of the memory that was free after the last
// burst, at most a tenth.

#include "bounds.h"

enum { BURST_MIB = 48, DOUBLINGS = 15, MOST = 1 << 20, QUIET_MS = 10000 };

static char **blocks;
static size_t count;

static void burst(uint64_t *random) {
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    count = 0;
    for (size_t bytes = 0; bytes < BURST_MIB << 20 && count < MOST; count++) {
        size_t size = mixed_size(random, DOUBLINGS);
        blocks[count] = block(size);
        bytes += size;
    }
    shuffle((void **)blocks, count, random);
    for (size_t kept = count / 10; count > kept;)
        free(blocks[--count]);
}

// Page faults of this many bursts.
static long faults(long pause, long periods) {
    uint64_t random = 3;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (long i = 0; i < periods; i++) {
        burst(&random);
        sleep_ms(pause);
    }
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

int main(int argc, char **argv) {
    program_name = "periodic";
    if (argc != 4)
        die(2, "usage: periodic NAME PAUSE_MS PERIODS");
    long pause = strtol(argv[2], NULL, 10), periods = strtol(argv[3], NULL, 10);
    blocks = table(MOST * sizeof *blocks);
    size_t before = resident();
    if (is_child())
        return child_says((double)faults(pause, periods));
    long without = (long)in_child(argv, "HEAPWRIGHT", "purge=never"), own = faults(pause, periods);
    printf("# %ld faults, %ld with purge=never\n", own, without);
    figure(argv[1], " faults", (double)own / (double)without, 1.1, "x");
    uint64_t random = 3;
    burst(&random);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    size_t full = resident();
    for (double end = now_ms() + QUIET_MS; now_ms() < end; sleep_ms(2))
        free(block(mixed_size(&random, 8)));
    double left = (double)resident() - (double)before;
    printf("# %.1f MiB free, %.1f left\n", ((double)full - (double)before) / MIB, left / MIB);
    figure(argv[1], " left after 10 s", left / ((double)full - (double)before), 0.1, "x");
    return 0;
}
