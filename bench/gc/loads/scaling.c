// scaling [how=threads|processes] [count=N] [rounds=R] [limit=KIB]
//
// Compares a heap that two threads share with a heap for each. COUNT workers each build ROUNDS
// small trees, and keep the last few. The workers are threads on one heap, or processes with
// separate heaps. Nearly all of the work is allocation.
//
// The wall time ends with the last worker. Two processes share only the machine's memory and its
// clock, so they show the limit of two cores.

#include "threads.h"
#include <sys/wait.h>

enum { DEPTH = 11, KEPT = 16 };

struct node {
    struct node *left, *right;
    uint64_t number;
};

// A chain of nodes holds the trees that stay: left is the next node, right the tree.
static size_t rounds;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct node *node = object;
    door_mark(tracer, node->left);
    door_mark(tracer, node->right);
}

static struct node *tree_new(struct door *door, unsigned depth, uint64_t number) {
    struct node *left = depth == 0 ? NULL : tree_new(door, depth - 1, number);
    struct node *right = depth == 0 ? NULL : tree_new(door, depth - 1, number + 1);
    struct node *node = door_new(door, sizeof *node, DOOR_TRACED);
    door_write(door, node, (void **)&node->left, left);
    door_write(door, node, (void **)&node->right, right);
    node->number = number;
    return node;
}

static uint64_t sum_of(const struct node *tree) {
    return tree == NULL ? 0 : tree->number + sum_of(tree->left) + sum_of(tree->right);
}

static uint64_t work(struct door *door, size_t number) {
    struct node *chain = NULL;
    for (size_t i = 0; i < KEPT; i++) {
        struct node *link = door_new(door, sizeof *link, DOOR_TRACED);
        door_write(door, link, (void **)&link->left, chain);
        chain = link;
    }
    uint64_t sum = 0;
    struct node *at = chain;
    for (size_t i = 0; i < rounds; i++) {
        struct node *tree = tree_new(door, DEPTH, number + i);
        door_write(door, at, (void **)&at->right, tree);
        at = at->left == NULL ? chain : at->left;
        if (at->right != NULL && i % KEPT == 0)
            sum += sum_of(at->right);
    }
    return sum;
}

// In a child the sum goes through the pipe.
static uint64_t processes_run(size_t count, size_t limit) {
    int ends[2];
    if (pipe(ends) != 0)
        die(2, "cannot make a pipe");
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            die(2, "cannot start a process");
        if (child == 0) {
            door_open(limit);
            struct worker worker = { .number = i, .work = work };
            worker_run(&worker);
            ssize_t sent = write(ends[1], &worker.sum, sizeof worker.sum);
            _exit(sent == sizeof worker.sum ? 0 : 2);
        }
    }
    uint64_t sum = 0, one;
    for (size_t i = 0; i < count; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            die(3, "a process failed");
        if (read(ends[0], &one, sizeof one) != sizeof one)
            die(2, "a process did not say what it computed");
        sum += one;
    }
    return sum;
}

int main(int argc, char **argv) {
    static const char *const ways[] = { "threads", "processes", NULL };
    settings_begin("scaling", argc, argv);
    size_t threads = setting_choice("how", ways) == 0, count = setting("count", 2, 1, MOST_THREADS);
    size_t limit = limit_setting(0);
    rounds = setting("rounds", 6000, 1, 100000000);
    uint64_t sum;
    if (threads) {
        door_open(limit);
        begin();
        sum = workers_run(count, work);
    } else {
        // The children read the interface's settings, and refuse unknown words.
        result_wall = now_ns();
        sum = processes_run(count, limit);
    }
    result_begin(sum);
    result_end();
    return 0;
}
