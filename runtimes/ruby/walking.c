/*
** All objects, one by one, and the end of a process.
**
**   hw_gc_walk --> visits: a vector of addresses, which belongs to an object --> Ruby's callback
**
** Ruby's callbacks may allocate, and a walk's visitor may not. The objects in the vector are kept
** until they were visited, because the memory of a dead object may become another object's. So the
** vector belongs to an object that lives as long as the walk. This holds even if a callback throws,
** its fiber is never resumed, or its thread is gone after a fork.
*/
#include "heapwright.h"

#include <malloc.h>

struct visits {
    VALUE *objects;
    size_t count, room;
};

static void
mark_visits(void *data)
{
    struct visits *visits = data;

    for (size_t i = 0; i < visits->count; i++) rb_gc_mark(visits->objects[i]);
}

static void
empty_visits(struct visits *visits)
{
    free(visits->objects);
    *visits = (struct visits){ NULL, 0, 0 };
}

static void
free_visits(void *data)
{
    empty_visits(data);
    free(data);
}

/* Without barriers, so minor collections trace it, too. */
static const rb_data_type_t visits_type = {
    .wrap_struct_name = "heapwright/visits",
    .function = { .dmark = mark_visits, .dfree = free_visits },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

struct walk {
    struct objspace *o;
    struct visits *visits;
    VALUE holder; /* 0: nothing is collected any more */
    bool is_whole;
};

static bool
visit(void *object, size_t size, uint32_t kind, void *context)
{
    struct walk *w = context;
    struct visits *visits = w->visits;
    VALUE obj = (VALUE)object;

    return RBASIC(obj)->flags == 0 || obj == w->holder ||
           ruby_push((void **)&visits->objects, &visits->count, &visits->room, sizeof obj, &obj);
}

static void
walk(struct objspace *o, hw_gc_mutator *mutator, void *context)
{
    ((struct walk *)context)->is_whole = hw_gc_walk(mutator, visit, context);
}

static struct walk
begin_walk(struct objspace *o)
{
    struct walk w = { .o = o, .visits = calloc(1, sizeof *w.visits) };

    if (w.visits == NULL) rb_memerror();
    if (!o->ending) w.holder = rb_data_typed_object_wrap(0, w.visits, &visits_type);
    ruby_stopped(o, BY_NOTHING, walk, &w);
    if (!w.is_whole) rb_memerror();
    return w;
}

static void
end_walk(struct walk *w)
{
    empty_visits(w->visits);
    if (w->holder == 0) free(w->visits);
    RB_GC_GUARD(w->holder);
}

static void
each_object(struct objspace *o, void (*with)(VALUE, void *), void *data)
{
    struct walk w = begin_walk(o);

    for (size_t i = 0; i < w.visits->count; i++) with(w.visits->objects[i], data);
    end_walk(&w);
}

struct count {
    void (*with)(VALUE, void *);
    void *data;
    bool is_whole;
};

static void
count_objects(struct objspace *o, hw_gc_mutator *mutator, void *context)
{
    static const VALUE nothing[5];
    struct count *count = context;
    struct visits visits = { NULL, 0, 0 };
    struct walk w = { .o = o, .visits = &visits };
    bool was_disabled = o->disabled;

    o->disabled = true;
    walk(o, mutator, &w);
    for (size_t i = 0; i < visits.count; i++) count->with(visits.objects[i], count->data);
    for (size_t at = visits.count, slots = ruby_slots(o); at < slots; at++) count->with((VALUE)nothing, count->data);
    o->disabled = was_disabled;
    empty_visits(&visits);
    count->is_whole = w.is_whole;
}

/* Ruby has two callbacks here. One counts objects, so the walk must make no object, which would
   be counted. The other (since 4.0) puts objects with ids into a table and needs memory, so
   nothing is collected until it has had all. For each slot without an object, `with` gets the
   same empty one. */
void
rb_gc_impl_each_object(void *objspace, void (*with)(VALUE, void *), void *data)
{
    struct count count = { with, data, false };

    ruby_stopped(objspace, BY_NOTHING, count_objects, &count);
    if (!count.is_whole) rb_memerror();
}

/* Each call passes a run of one slot. Runs may have any length. */
void
rb_gc_impl_each_objects(void *objspace, int (*with)(void *, void *, size_t, void *), void *data)
{
    struct walk w = begin_walk(objspace);

    for (size_t i = 0; i < w.visits->count; i++) {
        VALUE obj = w.visits->objects[i];
        size_t size = rb_gc_impl_obj_slot_size(obj);
        if (with((void *)obj, (char *)obj + size, size, data) != 0) break;
    }
    end_walk(&w);
}

static void
prepare(VALUE obj, void *context)
{
    rb_gc_prepare_heap_process_object(obj);
}

/* Process.warmup: objects that live now live for long. A compaction is two collections, so they
   are old afterwards. */
void
rb_gc_impl_prepare_heap(void *objspace)
{
    struct objspace *o = objspace;

    rb_gc_impl_start(o, true, true, true, true);
    each_object(o, prepare, NULL);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* ---- the end ------------------------------------------------------------------- */

static void
free_unless_kept(VALUE obj, void *context)
{
    if (RBASIC(obj)->flags != 0 && rb_gc_shutdown_call_finalizer_p(obj)) ruby_free_object(context, obj);
}

/* Writes out files, and frees the memory of extensions. Afterwards objects lead to freed ones,
   so nothing is collected. A walk does not visit dead objects that await the sweep, so the sweep
   ends first: such an object may be a file. */
void
rb_gc_impl_shutdown_call_finalizer(void *objspace)
{
    struct objspace *o = objspace;
    hw_gc_statistics s;

    if (!ruby_begin_jobs(o)) {
        o->disabled = true;
        return;
    }
    ruby_run_all_finalizers(o);
    hw_gc_stats(o->heap, &s, sizeof s);
    rb_gc_impl_gc_disable(o, s.phase == 2);
    o->ending = true;
    each_object(o, free_unless_kept, o);
    ruby_run_all_finalizers(o);
    ruby_end_jobs(o);
}

static void
free_any(VALUE obj, void *context)
{
    if (RBASIC(obj)->flags != 0) ruby_free_object(context, obj);
}

/* RUBY_FREE_AT_EXIT. Hardly anything of the VM is left: no code would run the jobs, and the
   process ends. */
void
rb_gc_impl_shutdown_free_objects(void *objspace)
{
    struct objspace *o = objspace;

    o->disabled = o->ending = true;
    each_object(o, free_any, o);
}
