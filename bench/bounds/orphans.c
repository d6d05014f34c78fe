// orphans VARIANT LIVE_MIB GENERATIONS
//
// Measures frees after the owner's death, and frees for an idle owner. The blocks have 16 bytes to
// 2 KiB, and LIVE_MIB of them live at the peak.
//
//   all        four threads build all and die; two others free all in random
//              order and die. Again and again.
//   half       the same, but only a random half is freed, and the next four
//              threads fill the holes: every slab has blocks of many dead threads.
//   survivor   four threads build all and die; the main thread frees all in
//              random order and builds as much: it must find the memory of the
//              dead threads.
//   idle       as survivor, but one thread builds, and lives on, idle.
//
// The first figure is the largest resident memory above the baseline at a generation's peak,
// divided by the live bytes. The second is the resident memory in the last generation, divided by
// that in the third. (In "idle" and "survivor" the peak is after the second build.)

#include "bounds.h"

enum { BUILDERS = 4, BREAKERS = 2, MOST_GENERATIONS = 200 };

static char **blocks;
static size_t *sizes;
static size_t places;
static uint64_t random_state = 42;

struct part {
    size_t from, to;
    uint64_t random;
};

// Fills the holes of a part.
static void *build(void *argument) {
    struct part *part = argument;
    for (size_t i = part->from; i < part->to; i++) {
        if (blocks[i] == NULL) {
            sizes[i] = mixed_size(&part->random, 7);
            blocks[i] = block(sizes[i]);
        }
    }
    return NULL;
}

// Frees a part; the remaining blocks were moved out of it.
static void *break_down(void *argument) {
    struct part *part = argument;
    for (size_t i = part->from; i < part->to; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return NULL;
}

// Puts blocks in random order, so that the first n are a random n.
static void mix(void) {
    for (size_t i = places; i > 1; i--) {
        size_t j = next_random(&random_state) % i;
        char *block = blocks[j];
        size_t size = sizes[j];
        blocks[j] = blocks[i - 1];
        sizes[j] = sizes[i - 1];
        blocks[i - 1] = block;
        sizes[i - 1] = size;
    }
}

// Runs `body` on the first `count` places in `threads` threads, to their end.
static void share_out(void *(*body)(void *), unsigned threads, size_t count) {
    struct part parts[BUILDERS];
    pthread_t running[BUILDERS];
    for (unsigned t = 0; t < threads; t++) {
        parts[t] = (struct part){ count * t / threads, count * (t + 1) / threads, next_random(&random_state) };
        running[t] = start(body, &parts[t]);
    }
    for (unsigned t = 0; t < threads; t++)
        pthread_join(running[t], NULL);
}

// A thread that builds on request, and is idle otherwise.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { IDLE, BUILD, END } order;

static void *builder(void *unused) {
    (void)unused;
    struct part all = { 0, places, 7 };
    pthread_mutex_lock(&lock);
    while (order != END) {
        if (order == BUILD) {
            build(&all);
            order = IDLE;
            pthread_cond_broadcast(&changed);
        }
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void tell_builder(int what) {
    pthread_mutex_lock(&lock);
    order = what;
    pthread_cond_broadcast(&changed);
    while (order == BUILD)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    program_name = "orphans";
    if (argc != 4)
        die(2, "usage: orphans all|half|survivor|idle LIVE_MIB GENERATIONS");
    const char *variant = argv[1];
    int generations = atoi(argv[3]);
    int half = strcmp(variant, "half") == 0, idle = strcmp(variant, "idle") == 0;
    int survivor = idle || strcmp(variant, "survivor") == 0;
    if (generations < 3 || generations > MOST_GENERATIONS)
        die(2, "orphans: 3 to 200 generations");
    places = (strtoul(argv[2], NULL, 10) << 20) / (16 * 127 / 7 * 3 / 2);
    blocks = table(places * sizeof *blocks);
    sizes = table(places * sizeof *sizes);
    size_t empty = resident();
    pthread_t idler = { 0 };
    if (idle)
        idler = start(builder, NULL);

    struct part all = { 0, places, 99 };
    double live = 0, most = 0, third = 0, last = 0;
    for (int g = 1; g <= generations; g++) {
        if (idle)
            tell_builder(BUILD);
        else
            share_out(build, BUILDERS, places);
        mix();
        if (survivor) {
            break_down(&all);
            build(&all);
        }
        double bytes = 0;
        for (size_t i = 0; i < places; i++)
            bytes += (double)sizes[i];
        last = (double)(resident() - empty);
        live = bytes > live ? bytes : live;
        most = last > most ? last : most;
        if (g == 3)
            third = last;
        if (survivor) {
            mix();
            break_down(&all);
        } else {
            share_out(break_down, BREAKERS, half ? places / 2 : places);
        }
    }
    if (idle) {
        tell_builder(END);
        pthread_join(idler, NULL);
    }
    char name[64];
    snprintf(name, sizeof name, "orphans %s", variant);
    printf("# %s: live %.1f MiB; resident at most %.1f, generation 3 %.1f, generation %d %.1f MiB\n", name,
           live / MIB, most / MIB, third / MIB, generations, last / MIB);
    figure(name, ": resident / live", most / live, 1.3, "x");
    figure(name, ": growth from generation 3 on", last / third, 1.1, "x");
    return 0;
}
