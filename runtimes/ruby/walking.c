/*
** All objects, one by one, and the end of a process.
**
**   hw_gc_walk --> visits: a vector of addresses, roots as long as it is gone through --> Ruby's callback
**
** Ruby's callbacks may allocate, and a walk's visitor may not. What the vector has is kept until it was
** visited: an object that dies meanwhile would leave another's memory behind.
*/
#include "heapwright.h"

static bool
visit(void *object, size_t size, uint32_t kind, void *context)
{
    struct visits *visits = context;
    VALUE obj = (VALUE)object;

    return RBASIC(obj)->flags == 0 ||
           ruby_push((void **)&visits->objects, &visits->count, &visits->room, sizeof obj, &obj);
}

static void
walk(struct objspace *o, hw_gc_mutator *mutator, void *visits)
{
    if (!hw_gc_walk(mutator, visit, visits)) rb_memerror();
}

struct walk {
    struct objspace *o;
    struct visits visits;
    void (*with)(VALUE, void *);
    int (*range)(void *, void *, size_t, void *);
    void *data;
};

static VALUE
visit_each(VALUE context)
{
    struct walk *w = (struct walk *)context;

    for (size_t i = 0; i < w->visits.count; i++) {
        VALUE obj = w->visits.objects[i];
        if (w->with != NULL) {
            w->with(obj, w->data);
            continue;
        }
        size_t size = rb_gc_impl_obj_slot_size(obj);
        if (w->range((void *)obj, (char *)obj + size, size, w->data) != 0) break;
    }
    return Qnil;
}

static VALUE
end_walk(VALUE context)
{
    struct walk *w = (struct walk *)context;
    struct visits **at = &w->o->visits;

    while (*at != &w->visits) at = &(*at)->next;
    *at = w->visits.next;
    free(w->visits.objects);
    return Qnil;
}

static void
begin_walk(struct walk *w)
{
    w->visits.next = w->o->visits;
    w->o->visits = &w->visits;
    ruby_stopped(w->o, BY_NOTHING, walk, &w->visits);
}

static size_t
each_object(struct objspace *objspace, void (*with)(VALUE, void *), void *data)
{
    struct walk w = { .o = objspace, .with = with, .data = data };

    begin_walk(&w);
    visit_each((VALUE)&w);
    size_t count = w.visits.count;
    end_walk((VALUE)&w);
    return count;
}

/* A slot that holds no object: all are alike. Ruby counts them by their flags. */
void
rb_gc_impl_each_object(void *objspace, void (*with)(VALUE, void *), void *data)
{
    static const VALUE nothing[5];
    size_t objects = each_object(objspace, with, data), slots = ruby_slots(objspace);

    for (; objects < slots; objects++) with((VALUE)nothing, data);
}

/* Of runs of slots, each has one: any number is right. This callback may throw: it yields to a block. */
void
rb_gc_impl_each_objects(void *objspace, int (*with)(void *, void *, size_t, void *), void *data)
{
    struct walk w = { .o = objspace, .range = with, .data = data };

    begin_walk(&w);
    rb_ensure(visit_each, (VALUE)&w, end_walk, (VALUE)&w);
}

static void
prepare(VALUE obj, void *context)
{
    rb_gc_prepare_heap_process_object(obj);
}

/* Process.warmup: what lives now lives for long. */
void
rb_gc_impl_prepare_heap(void *objspace)
{
    struct objspace *o = objspace;

    for (int i = 0; i < 2; i++) rb_gc_impl_start(o, true, true, true, false);
    each_object(o, prepare, NULL);
    hw_gc_trim(o->heap);
}

/* ---- the end ------------------------------------------------------------------- */

static void
free_one(VALUE obj, void *context)
{
    struct objspace *o = context;

    if (RBASIC(obj)->flags == 0 || !rb_gc_shutdown_call_finalizer_p(obj)) return;
    rb_gc_obj_free_vm_weak_references(obj);
    if (rb_gc_obj_free(o, obj)) RBASIC(obj)->flags = 0;
}

/* Files are written out, what extensions have is freed. Afterwards objects lead to freed ones, so nothing is collected. */
void
rb_gc_impl_shutdown_call_finalizer(void *objspace)
{
    struct objspace *o = objspace;

    if (atomic_exchange(&o->finalizing, true)) {
        o->disabled = true;
        return;
    }
    ruby_run_all_finalizers(o);
    o->disabled = true;
    each_object(o, free_one, o);
    ruby_run_all_finalizers(o);
    atomic_store(&o->finalizing, false);
}

static void
free_any(VALUE obj, void *context)
{
    if (RBASIC(obj)->flags == 0) return;
    rb_gc_obj_free_vm_weak_references(obj);
    if (rb_gc_obj_free(context, obj)) RBASIC(obj)->flags = 0;
}

/* RUBY_FREE_AT_EXIT. There is hardly a VM any more: nobody would run what waits, and the process ends. */
void
rb_gc_impl_shutdown_free_objects(void *objspace)
{
    struct objspace *o = objspace;

    o->ending = true;
    each_object(o, free_any, o);
}
