// balance [rule=factor|balance] [size=N] [rounds=N]
//
// Several heaps in one process, as a browser's tabs are: which of them should have the memory? Each keeps a
// binary tree, and drops and makes leaves' parents anew as often as its pace says; one keeps much and hardly allocates, one
// keeps little and allocates most, one does both, one rests after its beginning.
//
//   heap       lives        of all that is allocated
//   archive    32 MiB        2 %
//   worker      2 MiB       60 %
//   editor     16 MiB       37 %
//   idle        8 MiB        1 %
//
// rule=factor: size is factor_percent of each. rule=balance: size is what hw_gc_balance is given, in KiB. What
// is printed: the CPU time of all, collections and pauses of all heaps, and what all heaps have at a time, on average over rounds
// and at most. To be compared at equal average: ci/gc.sh balance.

#include "setting.h"
#include <heapwright_gc.h>
#include <time.h>

struct node {
    struct node *left, *right;
    long value[2];
};

struct tab {
    const char *name;
    size_t depth, share;
    hw_gc_heap *heap;
    hw_gc_mutator *mutator;
    struct node **tree;
    uint64_t random, pauses_ns;
};

static struct tab tabs[] = {
    { .name = "archive", .depth = 19, .share = 2 },
    { .name = "worker", .depth = 15, .share = 60 },
    { .name = "editor", .depth = 18, .share = 37 },
    { .name = "idle", .depth = 17, .share = 1 },
};
enum { TABS = sizeof tabs / sizeof *tabs, TURN = 400, LEAST = 256 << 10 };

static void trace(hw_gc_tracer *tracer, void *object, void *data) {
    struct node *node = object;
    (void)data;
    hw_gc_mark(tracer, node->left);
    hw_gc_mark(tracer, node->right);
}

static struct node *node_new(struct tab *tab) {
    struct node *node = hw_gc_new(tab->mutator, sizeof *node, HW_GC_TRACED);
    if (node == NULL)
        die(3, "out of memory");
    return node;
}

static void populate(struct tab *tab, struct node *node, size_t depth) {
    if (depth == 0)
        return;
    hw_gc_write(tab->mutator, node, (void **)&node->left, node_new(tab));
    hw_gc_write(tab->mutator, node, (void **)&node->right, node_new(tab));
    populate(tab, node->left, depth - 1);
    populate(tab, node->right, depth - 1);
}

// Makes a subtree of 64 nodes or so anew, at a random place.
static void renew(struct tab *tab) {
    enum { SUBTREE = 5 };
    struct node *at = *tab->tree;
    tab->random = tab->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t path = tab->random >> 20;
    for (size_t depth = tab->depth; depth > SUBTREE; depth--, path >>= 1)
        at = path & 1 ? at->left : at->right;
    at->left = at->right = NULL;
    populate(tab, at, SUBTREE);
}

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static hw_gc_statistics statistics;

static size_t bytes(struct tab *tab) {
    hw_gc_stats(tab->heap, &statistics, sizeof statistics);
    return statistics.in_use_bytes + statistics.empty_bytes + statistics.large_bytes;
}

int main(int argc, char **argv) {
    settings_begin("balance", argc, argv);
    static const char *const rules[] = { "factor", "balance", NULL };
    size_t balance = setting_choice("rule", rules), size = setting("size", 200, 101, 100000000);
    size_t rounds = setting("rounds", 600, 1, 1000000);
    settings_end();
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = trace };
    hw_gc_options options = { .size = sizeof options, .least = LEAST, .markers = 1, .factor_percent = balance ? 0 : (uint32_t)size };
    for (struct tab *tab = tabs; tab < tabs + TABS; tab++) {
        tab->heap = hw_gc_create(&options, &runtime);
        if (tab->heap == NULL || (tab->mutator = hw_gc_attach(tab->heap)) == NULL)
            die(3, "out of memory");
        if (balance)
            hw_gc_balance(tab->heap, size << 10);
        tab->tree = (struct node **)hw_gc_root_new(tab->mutator, NULL);
        *tab->tree = node_new(tab);
        populate(tab, *tab->tree, tab->depth);
        hw_gc_collect(tab->mutator);
        hw_gc_stats(tab->heap, &statistics, sizeof statistics);
        tab->pauses_ns = statistics.pause_ns;
    }
    uint64_t began = cpu_ns();
    size_t sum = 0, most = 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t all = 0;
        for (struct tab *tab = tabs; tab < tabs + TABS; tab++) {
            for (size_t n = 0; n < TURN * tab->share / 100; n++)
                renew(tab);
            // Wholly free pages are of use to the other heaps.
            hw_gc_trim(tab->heap);
            all += bytes(tab);
        }
        sum += all / 1024;
        most = all > most ? all : most;
    }
    uint64_t took = cpu_ns() - began, cycles = 0, pauses = 0;
    for (struct tab *tab = tabs; tab < tabs + TABS; tab++) {
        hw_gc_stats(tab->heap, &statistics, sizeof statistics);
        cycles += statistics.cycles - 1;
        pauses += statistics.pause_ns - tab->pauses_ns;
        printf("heap %s cycles=%llu live=%llu goal=%llu\n", tab->name, (unsigned long long)statistics.cycles,
               (unsigned long long)statistics.live_bytes, (unsigned long long)statistics.goal_bytes);
        hw_gc_detach(tab->mutator);
        hw_gc_destroy(tab->heap);
    }
    printf("result program=balance cpu_ns=%llu cycles=%llu pause_ns=%llu average=%zu peak=%zu\n", (unsigned long long)took,
           (unsigned long long)cycles, (unsigned long long)pauses, sum / rounds * 1024, most);
    return 0;
}
