/*
 * The parts of a collected heap that a runtime uses beside memory. They are events, kinds,
 * references to the outside, a word and a state for each thread, a callback when memory is short.
 *
 * The runtime of this program: pairs in the heap; static cells that lead to them; jumps at errors.
 */
#include "check.h"

#include <heapwright_gc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

enum { PAIR = HW_GC_TRACED, CELL_OWNER = HW_GC_TRACED | HW_GC_USER };

struct pair { void *left, *right; };
struct owner { void *cell; };

/* Static data that objects lead to, and that leads to objects. */
static struct cell { void *to; int marked; } cells[2];

static struct {
    unsigned begun[16], ended[16], depth, deepest, minor, large_bytes;
    uint64_t last, pauses;
    unsigned strange, owners;
    int tracing, refused, made;
    jmp_buf out;
} seen;

static void event(const hw_gc_event *event, void *data)
{
    CHECK(data == &seen);
    CHECK(event->size == sizeof *event);
    CHECK(event->span >= HW_GC_SPAN_COLLECTION && event->span <= HW_GC_SPAN_LARGE);
    CHECK(event->time_ns >= seen.last);
    seen.last = event->time_ns;
    CHECK(event->heap != NULL && event->thread != 0);
    if (event->mutator != NULL) CHECK(hw_gc_data(event->mutator) == &seen);
    if (event->edge == HW_GC_EVENT_BEGINS) {
        seen.begun[event->span]++;
        if (event->span != HW_GC_SPAN_LARGE && ++seen.depth > seen.deepest) seen.deepest = seen.depth;
    } else {
        CHECK(event->edge == HW_GC_EVENT_ENDS);
        seen.ended[event->span]++;
        if (event->span != HW_GC_SPAN_LARGE) seen.depth--;
    }
    if (event->span == HW_GC_SPAN_PAUSE && event->edge == HW_GC_EVENT_ENDS) seen.pauses += event->ns;
    if (event->span == HW_GC_SPAN_LARGE) seen.large_bytes = (unsigned)event->bytes;
    if (event->span == HW_GC_SPAN_TRACE) {
        seen.tracing = event->edge == HW_GC_EVENT_BEGINS;
        seen.minor = event->flags & HW_GC_EVENT_MINOR;
        if (seen.tracing)
            for (size_t n = 0; n < 2; n++) cells[n].marked = 0;
        else if (!(event->flags & HW_GC_EVENT_MINOR)) /* The runtime's own sweep. */
            for (size_t n = 0; n < 2; n++)
                if (!cells[n].marked) cells[n].to = NULL;
    }
    /* The callback may read statistics. */
    hw_gc_statistics s;
    CHECK(hw_gc_stats(event->heap, &s, sizeof s) == sizeof s);
}

static void trace(hw_gc_tracer *tracer, void *object, uint32_t kind, void *data)
{
    (void)data;
    if (kind == PAIR) {
        struct pair *pair = object;
        hw_gc_mark_slot(tracer, &pair->left);
        hw_gc_mark_slot(tracer, &pair->right);
    } else {
        CHECK(kind == CELL_OWNER);
        seen.owners++;
        hw_gc_mark(tracer, ((struct owner *)object)->cell);
    }
}

/* A minor collection does not trace old objects, so it does not find the cells that they lead to.
 * So all cells are roots. */
static void roots(hw_gc_tracer *tracer, void *data)
{
    (void)data;
    CHECK(seen.tracing);
    for (size_t n = 0; n < 2; n++)
        if (seen.minor) hw_gc_mark(tracer, cells[n].to);
}

static void outside(hw_gc_tracer *tracer, void *reference, void *data)
{
    (void)data;
    CHECK(seen.tracing);
    struct cell *cell = reference;
    if (cell == &cells[0] || cell == &cells[1]) {
        if (!cell->marked) hw_gc_mark(tracer, cell->to);
        cell->marked = 1;
    } else {
        seen.strange++;
    }
}

static bool out_of_memory(hw_gc_mutator *mutator, size_t size, uint32_t kind, void *data)
{
    (void)data, (void)kind;
    CHECK(hw_gc_data(mutator) == &seen);
    CHECK(size == 1 << 20);
    seen.refused++;
    longjmp(seen.out, 1);
}

static void count_state(hw_gc_mutator *mutator, uint32_t state, void *context)
{
    ((unsigned *)context)[state]++;
    CHECK(mutator != NULL);
}

struct side { hw_gc_heap *heap; _Atomic int at; hw_gc_mutator *mutator; };

static void *other_thread(void *argument)
{
    struct side *side = argument;
    hw_gc_mutator *mutator = hw_gc_attach(side->heap);
    CHECK(mutator != NULL);
    hw_gc_set_data(mutator, &seen);
    hw_gc_leave(mutator);
    side->mutator = mutator;
    side->at = 1;
    return NULL;
}

static void states(hw_gc_heap *heap, hw_gc_mutator *mutator)
{
    struct side side = { heap, 0, NULL };
    pthread_t other;
    unsigned counts[3] = { 0, 0, 0 };
    CHECK(pthread_create(&other, NULL, other_thread, &side) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(side.at == 1);
    /* A collection does not wait for a thread that is away. */
    hw_gc_collect(mutator);
    CHECK(hw_gc_attached(heap, count_state, counts) == 2);
    CHECK(counts[HW_GC_THREAD_STATE_AWAY] == 1 && counts[HW_GC_THREAD_STATE_AT_WORK] == 1);
    /* This thread takes the other mutator over, while its own is away. */
    hw_gc_leave(mutator);
    CHECK(hw_gc_try_enter(side.mutator));
    hw_gc_detach(side.mutator);
    hw_gc_enter(mutator);
    CHECK(hw_gc_attached(heap, NULL, NULL) == 1);
}

/* Allocates until there is no memory. */
__attribute__((noinline)) static void fill(hw_gc_mutator *mutator, void **list)
{
    if (setjmp(seen.out) != 0) return;
    for (;;) {
        struct pair *link = hw_gc_new(mutator, sizeof *link, PAIR);
        hw_gc_write(mutator, link, &link->right, *list);
        *list = link;
        /* No test for NULL: the callback jumps out. */
        hw_gc_write(mutator, link, &link->left, hw_gc_new(mutator, 1 << 20, HW_GC_LEAF));
        seen.made++;
    }
}

int main(void)
{
    for (int way = 0; way < 3; way++) {
        memset(&seen, 0, sizeof seen);
        memset(cells, 0, sizeof cells);
        hw_gc_options options = { .size = sizeof options, .most = 16 << 20, .markers = 1 };
        options.incremental = way >= 1;
        options.generations = way >= 2;
        hw_gc_runtime runtime = { .size = sizeof runtime, .data = &seen };
        runtime.event = event;
        runtime.trace_kind = trace;
        runtime.roots = roots;
        runtime.outside = outside;
        runtime.out_of_memory = out_of_memory;
        runtime.large_bytes = 100000;
        hw_gc_heap *heap = hw_gc_create(&options, &runtime);
        CHECK(heap != NULL);
        hw_gc_mutator *mutator = hw_gc_attach(heap);
        CHECK(mutator != NULL && hw_gc_data(mutator) == NULL);
        hw_gc_set_data(mutator, &seen);

        /* root -> pair -> owner -> static cell -> pair */
        void **root = hw_gc_root_new(mutator, hw_gc_new(mutator, sizeof(struct pair), PAIR));
        CHECK(root != NULL && *root != NULL);
        struct pair *pair = *root;
        hw_gc_write(mutator, pair, &pair->left, hw_gc_new(mutator, sizeof(struct owner), CELL_OWNER));
        CHECK(hw_gc_object_kind(pair) == PAIR && hw_gc_object_kind(pair->left) == CELL_OWNER);
        CHECK(hw_gc_object_kind(&options) == UINT32_MAX);
        struct owner *owner = pair->left;
        hw_gc_write(mutator, owner, &owner->cell, &cells[0]);
        hw_gc_write(mutator, pair, &pair->right, &options);
        struct pair *far = hw_gc_new(mutator, sizeof *far, PAIR);
        cells[0].to = cells[1].to = far;
        far->left = far->right = NULL;
        /* A store outside of the heap: its object is kept, whatever was marked. */
        hw_gc_shade(mutator, NULL, far);
        for (int n = 0; n < 200000; n++) CHECK(hw_gc_new(mutator, 48, HW_GC_LEAF) != NULL);
        hw_gc_collect(mutator);
        CHECK(cells[0].to == far && cells[1].to == NULL);
        CHECK(hw_gc_find(heap, far) == far);
        CHECK(seen.owners > 0 && seen.strange > 0);

        void *large = hw_gc_new(mutator, 200000, HW_GC_LEAF);
        CHECK(large != NULL && seen.begun[HW_GC_SPAN_LARGE] == 1 && seen.large_bytes == 200000);
        hw_gc_collect(mutator);
        CHECK(seen.ended[HW_GC_SPAN_LARGE] == 1);

        /* Each object is kept, so that memory ends. */
        void **list = hw_gc_root_new(mutator, NULL);
        CHECK(list != NULL);
        fill(mutator, list);
        CHECK(seen.refused == 1 && seen.made >= 12 && seen.made <= 16);
        /* The heap works as before. */
        hw_gc_root_free(mutator, list);
        hw_gc_collect(mutator);
        CHECK(hw_gc_new(mutator, 1 << 20, HW_GC_LEAF) != NULL);

        states(heap, mutator);

        hw_gc_statistics s;
        hw_gc_collect(mutator);
        hw_gc_stats(heap, &s, sizeof s);
        CHECK(seen.begun[HW_GC_SPAN_COLLECTION] == s.cycles && seen.ended[HW_GC_SPAN_COLLECTION] == s.cycles);
        CHECK(seen.begun[HW_GC_SPAN_PAUSE] == s.pauses && seen.ended[HW_GC_SPAN_PAUSE] == s.pauses);
        CHECK(seen.pauses == s.pause_ns && s.cycles > 3);
        for (unsigned span = 1; span < HW_GC_SPAN_LARGE; span++) CHECK(seen.begun[span] == seen.ended[span]);
        CHECK(seen.begun[HW_GC_SPAN_ROOTS] >= s.cycles && seen.begun[HW_GC_SPAN_WEAK] >= s.cycles);
        /* The depth counts a collection, its trace, a pause, a mark, and a span within. */
        CHECK(seen.depth == 0 && seen.deepest == 5);
        hw_gc_detach(mutator);
        hw_gc_destroy(heap);
        CHECK(seen.begun[HW_GC_SPAN_LARGE] == seen.ended[HW_GC_SPAN_LARGE]);
    }
    return 0;
}
