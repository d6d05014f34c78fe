// Threads on our own stacks.
//
//   stacks   | slot 0 | slot 1 | ...                     one mapping, a slot a thread
//   a slot   | unused .... stack | thread-local, thread's record |
//                                ^ where the thread's first function stood
//
// A slot is reused after its thread was joined. The kernel tells which of its pages are resident,
// so that stacks are distinguished from the heap. Memory above the page of the first function
// counts as heap: there allocators keep thread-local variables (scudo its whole cache). The last
// part, from the thread's record on, is the C library's and resident under every allocator.

#ifndef THREADS_H
#define THREADS_H

#include "memory.h"
#include <pthread.h>

enum { STACK = 256 << 10, MOST_THREADS = 10000 };

struct slot {
    pthread_t thread;
    void (*body)(size_t slot, size_t index);
    size_t index;
    // The end of the page where the stack begins; NULL: never used.
    char *begins;
    // The page of the C library's record of the thread.
    char *record;
    // The next one in the list of ended threads.
    size_t next;
};

static char *stacks;
static struct slot *slots;
static size_t slot_count;
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended_some = PTHREAD_COND_INITIALIZER;
// Slot + 1 of the first ended thread that was not joined; 0: none.
static size_t ended;

static inline void threads_prepare(size_t most) {
    slot_count = most;
    slots = table(most * sizeof *slots);
    stacks = mmap(NULL, most * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        die(2, "cannot map stacks");
    // A huge page would be sixteen stacks at once.
    madvise(stacks, most * STACK, MADV_NOHUGEPAGE);
}

static void *thread_begin(void *argument) {
    size_t at = (size_t)argument;
    struct slot *slot = &slots[at];
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    slot->begins = (char *)(here / PAGE * PAGE + PAGE);
    slot->record = (char *)((uintptr_t)pthread_self() / PAGE * PAGE);
    slot->body(at, slot->index);
    live_flush();
    spent_flush();
    pthread_mutex_lock(&ended_lock);
    slot->next = ended;
    ended = at + 1;
    pthread_cond_signal(&ended_some);
    pthread_mutex_unlock(&ended_lock);
    return NULL;
}

static inline void thread_start(size_t at, void (*body)(size_t slot, size_t index), size_t index) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + at * STACK, STACK);
    slots[at].body = body;
    slots[at].index = index;
    if (pthread_create(&slots[at].thread, &attributes, thread_begin, (void *)at) != 0)
        die(2, "cannot start a thread");
    pthread_attr_destroy(&attributes);
}

// Waits for a running thread; its slot is then free.
static inline size_t thread_ended(void) {
    pthread_mutex_lock(&ended_lock);
    while (ended == 0)
        pthread_cond_wait(&ended_some, &ended_lock);
    size_t at = ended - 1;
    ended = slots[at].next;
    pthread_mutex_unlock(&ended_lock);
    pthread_join(slots[at].thread, NULL);
    return at;
}

// Runs `total` threads from `first` on, `at_once` at a time: after each end the next one begins.
static inline void threads_in_turn(size_t first, size_t total, size_t at_once, void (*body)(size_t slot, size_t index)) {
    size_t started = 0, running = 0;
    for (; started < total && running < at_once; started++)
        thread_start(running++, body, first + started);
    for (; running > 0; running--) {
        size_t at = thread_ended();
        if (started < total) {
            thread_start(at, body, first + started++);
            running++;
        }
    }
}

// Resident bytes of all stacks, and of the C library's records behind them.
static inline size_t stack_bytes(void) {
    unsigned char flags[STACK / PAGE];
    size_t pages = 0;
    for (size_t at = 0; at < slot_count; at++) {
        char *from = stacks + at * STACK;
        if (slots[at].begins == NULL)
            continue;
        if (mincore(from, STACK, flags) != 0)
            die(2, "cannot ask what is resident of a stack");
        for (size_t page = 0; page < STACK / PAGE; page++) {
            char *here = from + page * PAGE;
            if (here < slots[at].begins || here >= slots[at].record)
                pages += flags[page] & 1;
        }
    }
    return pages * PAGE;
}

#endif
