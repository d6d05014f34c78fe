/*
** Compaction moves objects close together, and gives empty pages back.
**
**   GC.compact, a full collection with GC.auto_compact     sparse pages go      hw_gc_compact
**   GC.verify_compaction_references                        all pages that may   hw_gc_compact_all, then every reference is verified
**
**   mark     movable objects are reported as such, others pin their pages      rb_gc_impl_mark, rb_gc_impl_mark_and_pin
**   move     an object goes to the pool of the size that it wants              ruby_wanted, ruby_moved
**   update   each object, and then the VM, asks where its references are       ruby_update, rb_gc_impl_location
**
** Ruby's own functions change references after all objects have moved. All is one pause, in which
** the VM stands still.
**
** **Objects that stay**, with the other objects of their pages: objects that rb_gc_mark reports,
** objects that may be on a stack, and symbols. Objects with variables beside them, with an id
** (before 4.0) or with a finalizer stay, too, because tables know these by their addresses.
**
** **Dead objects** that await their free are updated, too, because the functions that free them
** look at their references. The objects that these lead to are still there: no page of kind
** HW_GC_FREED is swept while objects move.
*/
#include "heapwright.h"

bool
ruby_may_move(VALUE obj)
{
    if (RB_SPECIAL_CONST_P(obj)) return false;
    VALUE flags = RBASIC(obj)->flags;
    return !HAS_VARIABLES_BESIDE(flags) && !IS_NOTED(flags) && (flags & RUBY_T_MASK) != T_SYMBOL;
}

/* ---- moving ----------------------------------------------------------------- */

size_t
ruby_wanted(const void *object, void *data)
{
    struct objspace *o = data;
    VALUE obj = (VALUE)object;
    unsigned type = RB_BUILTIN_TYPE(obj);

    o->compaction.considered[type]++;
    size_t size = rb_gc_obj_optimal_size(obj);
    if (size == 0) return 0;
    /* An object whose contents are not embedded needs no more than its head. */
    if (size < NARROWEST || size > WIDEST) size = NARROWEST;
    size_t pool = o->pool_of[(size + 7) / 8];
    if (o->sizes[pool] == hw_gc_object_size(object)) return 0;
    if (type == T_OBJECT && rb_gc_rebuild_shape(obj, pool) == 0) return 0;
    return o->sizes[pool];
}

void
ruby_moved(void *object, const void *from, size_t size, void *data)
{
    struct objspace *o = data;
    VALUE obj = (VALUE)object;
    unsigned type = RB_BUILTIN_TYPE(obj);
    size_t was = hw_gc_object_size(from);

    if (!o->updates) {
        o->updates = true;
#if RUBY_IS_4
        rb_gc_before_updating_jit_code();
#endif
    }
    o->compaction.moved[type]++;
    if (size == was) return;
    (size > was ? o->compaction.moved_up : o->compaction.moved_down)[type]++;
    /* An object's shape says how wide it is. */
    if (type == T_OBJECT) rb_gc_set_shape(obj, rb_gc_rebuild_shape(obj, o->pool_of[(size + 7) / 8]));
}

void
ruby_update(void *object, void *data)
{
    struct objspace *o = data;

    if (o->updates && RBASIC((VALUE)object)->flags != 0) rb_gc_update_object_references(o, (VALUE)object);
}

#if RUBY_IS_4
static int
is_elsewhere(VALUE obj, void *data)
{
    return rb_gc_impl_object_moved_p(data, obj) ? ST_REPLACE : ST_CONTINUE;
}

static int
replace(VALUE *obj, void *data)
{
    *obj = rb_gc_impl_location(data, *obj);
    return ST_CONTINUE;
}
#endif

void
ruby_update_roots(void *data)
{
    struct objspace *o = data;

    if (!o->updates) return;
    rb_gc_update_vm_references(o);
#if RUBY_IS_4
    for (int table = 0; table < RB_GC_VM_WEAK_TABLE_COUNT; table++) rb_gc_vm_weak_table_foreach(is_elsewhere, replace, o, false, table);
    rb_gc_after_updating_jit_code();
#endif
    ruby_finalizers_update(o);
    o->updates = false;
}

bool
rb_gc_impl_object_moved_p(void *objspace, VALUE obj)
{
    return rb_gc_impl_location(objspace, obj) != obj;
}

VALUE
rb_gc_impl_location(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;

    void *moved = o->updates ? hw_gc_moved(o->compacting, (void *)obj) : NULL;

    return moved != NULL ? (VALUE)moved : obj;
}

/* ---- compacting --------------------------------------------------------------- */

static void
compact(struct objspace *o, hw_gc_mutator *mutator, void *all)
{
    bool majors = o->full_mark_allowed;

    memset(&o->compaction, 0, sizeof o->compaction);
    ruby_tell_external(o);
    if (!majors) hw_gc_resume_majors(mutator);
    o->compacting = mutator;
    if (*(bool *)all) hw_gc_compact_all(mutator);
    else hw_gc_compact(mutator);
    o->compacting = NULL;
    o->compaction_due = false;
    if (!majors) hw_gc_defer_majors(mutator);
    ruby_tell_external(o);
}

void
ruby_compact(struct objspace *o, enum reason reason)
{
    bool all = false;

    ruby_stopped(o, reason, compact, &all);
    /* A program that calls GC.compact wants to see the memory go. */
    if (reason == BY_METHOD) hw_purge();
}

static VALUE
by_type(const size_t *counts)
{
    VALUE hash = rb_hash_new();

    for (unsigned type = 0; type <= RUBY_T_MASK; type++) {
        if (counts[type] > 0) rb_hash_aset(hash, ID2SYM(rb_intern(ruby_type_name(type))), SIZET2NUM(counts[type]));
    }
    return hash;
}

static VALUE
latest_compact_info(VALUE self)
{
    /* A copy, because making the hashes may lead to a compaction. */
    struct compaction latest = ((struct objspace *)rb_gc_get_objspace())->compaction;
    VALUE info = rb_hash_new();

    rb_hash_aset(info, ID2SYM(rb_intern("considered")), by_type(latest.considered));
    rb_hash_aset(info, ID2SYM(rb_intern("moved")), by_type(latest.moved));
    rb_hash_aset(info, ID2SYM(rb_intern("moved_up")), by_type(latest.moved_up));
    rb_hash_aset(info, ID2SYM(rb_intern("moved_down")), by_type(latest.moved_down));
    return info;
}

static VALUE
gc_compact(VALUE self)
{
    rb_gc_impl_start(rb_gc_get_objspace(), true, true, true, true);
    return latest_compact_info(self);
}

static VALUE
auto_compact(VALUE self)
{
    return ((struct objspace *)rb_gc_get_objspace())->auto_compact ? Qtrue : Qfalse;
}

static VALUE
set_auto_compact(VALUE self, VALUE value)
{
    ((struct objspace *)rb_gc_get_objspace())->auto_compact = RTEST(value);
    return value;
}

/* Moves all movable objects, and then verifies every reference. Ruby's keywords tell its own
   collector how to make room; here there is room. */
static VALUE
verify_compaction_references(int argc, VALUE *argv, VALUE self)
{
    struct objspace *o = rb_gc_get_objspace();
    ID names[3] = { rb_intern("toward"), rb_intern("double_heap"), rb_intern("expand_heap") };
    VALUE options, given[3];
    bool all = true;

    rb_scan_args_kw(rb_keyword_given_p(), argc, argv, ":", &options);
    if (!NIL_P(options)) rb_get_kwargs(options, names, 0, 3, given);
    if (!rb_gc_impl_during_gc_p(o)) ruby_stopped(o, BY_METHOD, compact, &all);
    ruby_verify(o);
    ruby_run_jobs(o);
    return latest_compact_info(self);
}

void
ruby_compaction_init(void)
{
    rb_define_singleton_method(rb_mGC, "compact", gc_compact, 0);
    rb_define_singleton_method(rb_mGC, "auto_compact", auto_compact, 0);
    rb_define_singleton_method(rb_mGC, "auto_compact=", set_auto_compact, 1);
    rb_define_singleton_method(rb_mGC, "latest_compact_info", latest_compact_info, 0);
    rb_define_singleton_method(rb_mGC, "verify_compaction_references", verify_compaction_references, -1);
}
