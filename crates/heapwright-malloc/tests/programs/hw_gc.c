/* The collected heap of heapwright_gc.h, as a runtime calls it. The parts are barriers without a
 * store, finalizers, guardians, weak passes, ages, objects without barriers or trace, references
 * that the runtime changes itself, sizing, memory, stacks. */
#include "check.h"
#include <errno.h>
#include <heapwright_gc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

struct pair {
    void *first, *second;
    size_t value;
};

static void trace(hw_gc_tracer *tracer, void *object, void *data)
{
    struct pair *pair = object;
    (void)data;
    hw_gc_mark_slot(tracer, &pair->first);
    hw_gc_mark_slot(tracer, &pair->second);
}

static hw_gc_heap *heap;
static hw_gc_mutator *mutator;

static void begin(hw_gc_options options, bool traced)
{
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = traced ? trace : NULL };
    options.size = sizeof options;
    options.verify |= HW_GC_VERIFY_HEAP | HW_GC_VERIFY_BARRIERS;
    heap = hw_gc_create(&options, &runtime);
    CHECK(heap != NULL);
    mutator = hw_gc_attach(heap);
    CHECK(mutator != NULL);
}

static void end(void)
{
    hw_gc_detach(mutator);
    hw_gc_destroy(heap);
}

static struct pair *pair(size_t value)
{
    struct pair *made = hw_gc_new(mutator, sizeof *made, HW_GC_TRACED);
    CHECK(made != NULL);
    made->value = value;
    return made;
}

static void **root(void *object)
{
    void **cell = hw_gc_root_new(mutator, object);
    CHECK(cell != NULL);
    return cell;
}

static hw_gc_statistics now(void)
{
    static hw_gc_statistics statistics;
    hw_gc_stats(heap, &statistics, sizeof statistics);
    return statistics;
}

/* Stores that are reported before or after they happen: marking may step between any two. */
static void barriers(bool incremental, bool generations)
{
    enum { PLACES = 64, ROUNDS = 600 };
    begin((hw_gc_options){ .incremental = incremental, .generations = generations, .least = 64 << 10 }, true);
    struct pair **kept[PLACES];
    size_t expected[PLACES] = { 0 };
    for (size_t n = 0; n < PLACES; n++) kept[n] = (struct pair **)root(pair(n));
    for (size_t round = 1; round <= ROUNDS; round++) {
        size_t place = round * 7 % PLACES;
        struct pair *child = pair(round), *parent = *kept[place];
        switch (round % 6) {
        case 0: hw_gc_barrier(mutator, parent, &parent->first, child), parent->first = child; break;
        case 1: parent->first = child, hw_gc_barrier(mutator, parent, &parent->first, child); break;
        case 2: hw_gc_touch(mutator, parent), parent->first = child; break;
        case 3: parent->first = child, hw_gc_touch(mutator, parent); break;
        case 4: hw_gc_touch_slot(mutator, parent, &parent->first), parent->first = child; break;
        case 5: parent->first = child, hw_gc_touch_slot(mutator, parent, &parent->first); break;
        }
        expected[place] = round;
        if (round % 30 == 0) hw_gc_ask(mutator);
        hw_gc_step(mutator, 1);
        place = round % PLACES;
        CHECK(expected[place] == 0 || ((struct pair *)(*kept[place])->first)->value == expected[place]);
    }
    CHECK(now().cycles > 5);
    end();
}

static void add(void *object, void *context)
{
    struct pair *log = ((struct pair *)context)->second;
    log->value = log->value * 10 + ((struct pair *)object)->value;
}

static void count(void *context) { ++*(int *)context; }

static void finalizers(void)
{
    begin((hw_gc_options){ .markers = 1 }, true);
    int told = 0;
    hw_gc_tell_when_due(heap, count, &told);
    struct pair **log = (struct pair **)root(pair(0)), **context = (struct pair **)root(pair(0));
    (*context)->second = *log;
    for (uint32_t n = 0; n < HW_GC_PRIORITIES; n++)
        CHECK(hw_gc_finalize_with(mutator, pair(n + 1), add, *context, HW_GC_PRIORITIES - 1 - n));
    CHECK(!hw_gc_finalize_with(mutator, *log, add, NULL, HW_GC_PRIORITIES) && errno == EINVAL);
    CHECK(!hw_gc_finalize_with(mutator, *log, NULL, NULL, 0) && errno == EINVAL);
    *context = NULL;
    hw_gc_collect(mutator);
    CHECK(told == 1);
    CHECK(hw_gc_run_finalizers(mutator, 10) == HW_GC_PRIORITIES);
    CHECK((*log)->value == 4321);
    end();
}

static void guardians(void)
{
    begin((hw_gc_options){ .markers = 1 }, true);
    struct pair **guardian = (struct pair **)root(pair(0)), **kept = (struct pair **)root(pair(1));
    uint32_t number = hw_gc_guardian_new(mutator, *guardian);
    CHECK(number != 0);
    CHECK(hw_gc_guard(mutator, number, *kept, *kept));
    CHECK(!hw_gc_guard(mutator, number + 1, *kept, *kept));
    hw_gc_collect(mutator);
    CHECK(hw_gc_retrieve(mutator, number) == NULL);
    *kept = NULL;
    hw_gc_collect(mutator);
    struct pair *found = hw_gc_retrieve(mutator, number);
    CHECK(found != NULL && found->value == 1);
    CHECK(hw_gc_retrieve(mutator, number) == NULL);
    end();
}

struct table {
    void *entry[1000];
    size_t count;
};

static void look_through(hw_gc_tracer *tracer, void *context)
{
    struct table *table = context;
    size_t kept = 0;
    for (size_t n = 0; n < table->count; n++) {
        void *object = hw_gc_where(tracer, table->entry[n]);
        if (object != NULL) table->entry[kept++] = object;
    }
    table->count = kept;
}

static void weak_passes(void)
{
    static struct table table;
    void **kept[10];
    begin((hw_gc_options){ .markers = 1 }, true);
    CHECK(!hw_gc_add_weak_pass(heap, NULL, NULL) && errno == EINVAL);
    CHECK(hw_gc_add_weak_pass(heap, look_through, &table));
    for (table.count = 0; table.count < 1000; table.count++) {
        /* The objects are wide, so that they lie in many pages. */
        table.entry[table.count] = hw_gc_new(mutator, 4096, HW_GC_TRACED);
        if (table.count % 100 == 0) kept[table.count / 100] = root(table.entry[table.count]);
    }
    hw_gc_compact(mutator);
    CHECK(table.count == 10 && now().moved_objects > 0);
    for (size_t n = 0; n < 10; n++) CHECK(table.entry[n] == *kept[n]);
    CHECK(hw_gc_remove_weak_pass(heap, look_through, &table));
    CHECK(!hw_gc_remove_weak_pass(heap, look_through, &table));
    end();
}

static void ages(void)
{
    begin((hw_gc_options){ .generations = true, .least = 1 << 20 }, true);
    struct pair **old = (struct pair **)root(pair(1));
    CHECK(!hw_gc_collect_minor(mutator));
    for (int n = 0; n < 4000; n++) pair(0);
    struct pair *list = NULL;
    void **kept = root(NULL);
    for (int n = 0; n < 20000; n++) *kept = pair(0), ((struct pair *)*kept)->first = list, list = *kept;
    bool minor = false;
    for (int n = 0; n < 40 && !minor; n++) {
        for (int garbage = 0; garbage < 6000; garbage++) pair(0);
        minor = hw_gc_collect_minor(mutator);
    }
    CHECK(minor && now().minor_cycles > 0);
    CHECK(hw_gc_is_old(mutator, *old) && !hw_gc_is_old(mutator, pair(2)));
    CHECK(!hw_gc_is_pinned(mutator, *old));
    CHECK(hw_gc_pin(mutator, *old) && hw_gc_is_pinned(mutator, *old));
    hw_gc_unpin(mutator, *old);
    CHECK(hw_gc_moved(mutator, *old) == NULL);
    CHECK(hw_gc_unprotect(mutator, *old));
    for (size_t n = 0; n < 20; n++) {
        (*old)->first = pair(n);
        hw_gc_collect_minor(mutator);
        CHECK(((struct pair *)(*old)->first)->value == n);
    }
    end();
}

/* A table in memory of malloc. When objects move, the runtime itself changes the table and the
 * references in objects. */
enum { KNOWN = 3000 };
static struct { struct pair *known[KNOWN]; size_t asked, roots; } world;

static void trace_movable(hw_gc_tracer *tracer, void *object, void *data)
{
    (void)data;
    hw_gc_mark_movable(tracer, ((struct pair *)object)->first);
}

static void trace_world(hw_gc_tracer *tracer, void *data)
{
    (void)data;
    for (size_t n = 0; n < KNOWN; n++) hw_gc_mark_movable(tracer, world.known[n]);
}

static void *now_at(void *object)
{
    void *moved = hw_gc_moved(mutator, object);
    return moved != NULL ? moved : object;
}

static void update(void *object, void *data)
{
    (void)data;
    world.asked++;
    ((struct pair *)object)->first = now_at(((struct pair *)object)->first);
}

static void update_world(void *data)
{
    (void)data;
    world.roots++;
    for (size_t n = 0; n < KNOWN; n++) world.known[n] = now_at(world.known[n]);
}

static void updates(bool incremental, bool generations)
{
    hw_gc_runtime runtime = { .size = sizeof runtime, .trace = trace_movable, .roots = trace_world, .update = update,
        .update_roots = update_world };
    hw_gc_options options = { .size = sizeof options, .incremental = incremental, .generations = generations,
        .verify = HW_GC_VERIFY_HEAP | HW_GC_VERIFY_BARRIERS };
    memset(&world, 0, sizeof world);
    CHECK((heap = hw_gc_create(&options, &runtime)) != NULL && (mutator = hw_gc_attach(heap)) != NULL);
    for (size_t n = 0; n < KNOWN; n++) {
        for (int garbage = 0; garbage < 20; garbage++) pair(0);
        world.known[n] = pair(n);
        hw_gc_write(mutator, world.known[n], &world.known[n]->first, world.known[n / 2]);
    }
    struct pair *pinned = world.known[7];
    CHECK(hw_gc_pin(mutator, pinned));
    for (int all = 0; all < 2; all++) { /* The second time most lie in the page of pinned objects. */
        uint64_t moved = now().moved_objects;
        world.asked = world.roots = 0;
        if (all) hw_gc_compact_all(mutator);
        else hw_gc_compact(mutator);
        CHECK(now().moved_objects >= moved + (all ? KNOWN - 65536 / sizeof(struct pair) : KNOWN / 2) && world.asked >= KNOWN && world.roots == 1);
        CHECK(world.known[7] == pinned);
        for (size_t n = 0; n < KNOWN; n++)
            CHECK(world.known[n]->value == n && world.known[n]->first == world.known[n / 2]);
    }
    end();
}

static void without_trace(void)
{
    begin((hw_gc_options){ .conservative = true }, false);
    void **kept = root(NULL);
    for (size_t n = 0; n < 1000; n++) {
        struct pair *made = pair(n);
        made->first = *kept == NULL ? NULL : (char *)*kept + sizeof(void *);
        *kept = made;
    }
    hw_gc_collect(mutator);
    size_t left = 0;
    for (struct pair *at = *kept; at != NULL; at = at->first == NULL ? NULL : hw_gc_find(heap, at->first)) left++;
    CHECK(left == 1000);
    end();
}

/* Structs with sizes that they cannot have, fields that the library does not know, and kinds that
 * do not exist. */
static void refused(void)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 17, (64 << 10) + 8, (size_t)-8, (size_t)-1 };
    struct { hw_gc_options now; size_t later; } longer = { { .size = sizeof longer, .most = 1 << 20 }, 0 };
    char out[128 << 10] = "untouched";
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        hw_gc_options options = { .size = sizes[n], .most = 1 << 20 };
        hw_gc_runtime runtime = { .size = sizes[n], .trace = trace };
        errno = 0;
        CHECK(hw_gc_create(&options, NULL) == NULL && errno == EINVAL);
        errno = 0;
        CHECK(hw_gc_create(NULL, &runtime) == NULL && errno == EINVAL);
    }
    CHECK((heap = hw_gc_create(&longer.now, NULL)) != NULL);
    CHECK((mutator = hw_gc_attach(heap)) != NULL);
    errno = 0;
    CHECK(hw_gc_new(mutator, 16, 8) == NULL && errno == EINVAL);
    for (size_t n = 0; n < 2; n++) {
        errno = 0;
        CHECK(hw_gc_stats(heap, (hw_gc_statistics *)(void *)out, n == 0 ? 0 : (size_t)-1) == 0 && errno == EINVAL);
        errno = 0;
        CHECK(hw_get_stats((hw_statistics *)(void *)out, n == 0 ? 0 : sizeof out) == 0 && errno == EINVAL);
        CHECK(strcmp(out, "untouched") == 0);
    }
    end();
    longer.later = 1;
    errno = 0;
    CHECK(hw_gc_create(&longer.now, NULL) == NULL && errno == EINVAL);
}

static void sizes(void)
{
    static const uint32_t kinds[] = { HW_GC_TRACED, HW_GC_LEAF, HW_GC_FREED | HW_GC_USER };
    begin((hw_gc_options){ .least = 1 << 20 }, true);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (size_t size = 16; size < 300000; size += size / 7 + 8) {
            void *object = hw_gc_new(mutator, size, kinds[kind]);
            CHECK(object != NULL);
            CHECK(hw_gc_slot_of(mutator, object) == hw_gc_object_size(object));
            CHECK(hw_gc_slot_of(mutator, object) >= size);
        }
    }
    end();
}

static size_t eight_mib(const hw_gc_outcome *outcome, void *context)
{
    hw_gc_outcome *last = context;
    CHECK(outcome->size == sizeof *outcome);
    *last = *outcome;
    return 8 << 20;
}

static void sizing(void)
{
    hw_gc_outcome last = { 0 };
    begin((hw_gc_options){ .least = 64 << 10 }, true);
    hw_gc_set_policy(heap, eight_mib, &last);
    hw_gc_collect(mutator);
    CHECK(last.cycles == 1 && now().goal_bytes == 8 << 20);
    hw_gc_set_target(heap, 0, 64 << 10, 1 << 20);
    CHECK(now().goal_bytes == 1 << 20);
    hw_gc_set_policy(heap, NULL, NULL);
    hw_gc_set_target(heap, 0, 64 << 10, 0);
    hw_gc_balance(heap, 16 << 20);
    hw_gc_collect(mutator);
    CHECK(now().goal_bytes < 1 << 20);
    end();
}

/* Resident MiB of the process. */
static long resident(void)
{
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages / ((1 << 20) / sysconf(_SC_PAGESIZE));
}

/* Makes 64 MiB of garbage. The heap finds it by steps, without a whole collection. */
static void fill(void)
{
    hw_gc_defer(mutator);
    for (size_t n = 0; n < 64 << 10; n++)
        memset(hw_gc_new(mutator, 1 << 10, HW_GC_LEAF), 1, 1 << 10);
    hw_gc_resume(mutator);
    while (!hw_gc_step(mutator, 1000000000))
        ;
}

/* Memory that is given back has left the process. (Other memory of the process may go, too.) */
static void memory(void)
{
    begin((hw_gc_options){ 0 }, true);
    long before = resident();
    fill();
    CHECK(now().free_bytes > 60 << 20 && resident() > before + 60);
    CHECK(hw_gc_trim(heap) > 60 << 20);
    CHECK(resident() < before + 8 && now().empty_bytes == 0);
    /* An idle heap gives memory back at its safepoints, or by malloc's slow paths. */
    for (int by_malloc = 0; by_malloc < 2; by_malloc++) {
        fill();
        for (int tenth = 0; tenth < 100 && resident() >= before + 10; tenth++) {
            usleep(100000);
            if (by_malloc)
                for (size_t n = 1; n < 200; n++)
                    free(malloc(n * 100));
            else
                hw_gc_safepoint(mutator);
        }
        CHECK(resident() < before + 10);
    }
    /* A requested collection keeps only the memory that the heap may use before the next one. */
    fill();
    memset(hw_gc_new(mutator, 100 << 20, HW_GC_LEAF), 1, 100 << 20);
    hw_gc_collect(mutator);
    CHECK(resident() < before + 10);
    end();
}

static ucontext_t first, second;
static char *stack;
static bool is_named;
enum { STACK = 256 << 10 };

/* Runs on another stack. Only this frame leads to the object. */
static void elsewhere(void)
{
    if (is_named)
        hw_gc_scan_stack(mutator, stack + STACK);
    char *volatile object = hw_gc_new(mutator, 64, HW_GC_LEAF);
    memset(object, 7, 64);
    hw_gc_collect(mutator);
    hw_gc_collect(mutator);
    CHECK(hw_gc_find(heap, object + 5) == object && object[63] == 7);
}

/* A collection on another stack works if the stack was named, or else ends the program. */
static void stacks(void)
{
    stack = malloc(STACK);
    for (int named = 1; named >= 0; named--) {
        int status = 0, said[2];
        CHECK(pipe(said) == 0);
        pid_t child = fork();
        if (child == 0) {
            dup2(said[1], 2);
            is_named = named != 0;
            begin((hw_gc_options){ 0 }, true);
            hw_gc_scan_stack(mutator, &status + 1);
            CHECK(getcontext(&second) == 0);
            second.uc_stack.ss_sp = stack;
            second.uc_stack.ss_size = STACK;
            second.uc_link = &first;
            makecontext(&second, elsewhere, 0);
            CHECK(swapcontext(&first, &second) == 0);
            hw_gc_scan_stack(mutator, &status + 1);
            hw_gc_collect(mutator);
            _exit(0);
        }
        char line[400] = "";
        close(said[1]);
        CHECK(read(said[0], line, sizeof line - 1) >= 0);
        close(said[0]);
        CHECK(waitpid(child, &status, 0) == child);
        if (named)
            CHECK(status == 0 && line[0] == 0);
        else
            CHECK(WTERMSIG(status) == SIGABRT && strstr(line, "hw_gc_scan_stack") != NULL);
    }
    free(stack);
}

int main(void)
{
    memory();
    stacks();
    barriers(true, false);
    barriers(false, true);
    barriers(true, true);
    finalizers();
    guardians();
    weak_passes();
    ages();
    updates(false, false);
    updates(true, true);
    without_trace();
    refused();
    sizes();
    sizing();
    return 0;
}
