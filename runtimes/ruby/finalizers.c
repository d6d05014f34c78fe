/*
** Finalizers, frees that wait, object ids, and places that do not keep what they lead to.
**
**   finalizers   object -> array of blocks    the arrays are roots
**   id_of        object -> id                 object_of: the other way round
**
**   sweep finds a dead object with FL_FINALIZE --> job: its id, its array     --> run_jobs, with the GVL, later
**   rb_gc_obj_free must not free now           --> job: a function, its data  -/
**
** A slot goes at once: what a job needs is in it. The sweep tells of a death where the object's kind is HW_GC_FREED;
** for the others that have an id or a finalizer there is a list, looked through when all is marked.
**
** **Weak places** (WeakMap) lie in memory of malloc. Those that were reported are looked through when all is
** marked: what is dead is Qundef from then on. An old object is not traced in a minor collection, so its places stay in the list
** until the next major one begins. A place whose object has died is not read.
*/
#include "heapwright.h"

void
ruby_finalizers_init(struct objspace *o)
{
    o->finalizers = st_init_numtable();
    o->id_of = st_init_numtable();
    o->object_of = st_init_numtable();
    o->weak = st_init_numtable();
    pthread_mutex_init(&o->weak_lock, NULL);
    o->next_id = RUBY_IMMEDIATE_MASK + 1;
    o->run_jobs = rb_postponed_job_preregister(0, ruby_run_jobs, o);
}

static int
mark_value(st_data_t key, st_data_t value, st_data_t tracer)
{
    hw_gc_mark((hw_gc_tracer *)tracer, (void *)value);
    return ST_CONTINUE;
}

void
ruby_finalizers_roots(struct objspace *o, hw_gc_tracer *tracer)
{
    st_foreach(o->finalizers, mark_value, (st_data_t)tracer);
    for (struct job *job = atomic_load(&o->jobs); job; job = job->next) {
        if (job->dfree == NULL) hw_gc_mark(tracer, (void *)job->blocks);
    }
}

/* ---- jobs ------------------------------------------------------------------- */

static void
add_job(struct objspace *o, struct job job)
{
    struct job *added = malloc(sizeof *added);

    if (added == NULL) rb_bug("heapwright: no memory to remember what is to be freed");
    *added = job;
    added->next = atomic_load(&o->jobs);
    while (!atomic_compare_exchange_weak(&o->jobs, &added->next, added)) continue;
    if (!o->ending) rb_postponed_job_trigger(o->run_jobs);
}

void
rb_gc_impl_make_zombie(void *objspace, VALUE obj, void (*dfree)(void *), void *data)
{
    if (dfree != NULL) add_job(objspace, (struct job){ .dfree = dfree, .data = data });
}

static VALUE
block_at(long i, void *blocks)
{
    return RARRAY_AREF((VALUE)blocks, i);
}

static void
run_finalizer(VALUE id, VALUE blocks)
{
    rb_gc_run_obj_finalizer(id, RARRAY_LEN(blocks), block_at, (void *)blocks);
    RB_GC_GUARD(blocks);
}

static void
run_every_job(struct objspace *o)
{
    struct job *job;

    while ((job = atomic_load(&o->jobs)) != NULL) {
        if (!atomic_compare_exchange_weak(&o->jobs, &job, job->next)) continue;
        struct job now = *job;
        free(job);
        if (now.dfree != NULL) now.dfree(now.data);
        else run_finalizer(now.id, now.blocks);
    }
}

void
ruby_run_jobs(void *context)
{
    struct objspace *o = context;

    if (atomic_exchange(&o->finalizing, true)) return;
    rb_gc_set_pending_interrupt();
    run_every_job(o);
    rb_gc_unset_pending_interrupt();
    atomic_store(&o->finalizing, false);
}

/* ---- deaths -------------------------------------------------------------------- */

static VALUE
id_of(struct objspace *o, VALUE obj)
{
    st_data_t id;

    if (st_lookup(o->id_of, obj, &id)) return (VALUE)id;
    id = ULL2NUM(o->next_id);
    o->next_id += RUBY_IMMEDIATE_MASK + 1;
    return id;
}

/* An object that had an id or a finalizer is dead. It can be read once more. */
void
ruby_object_died(struct objspace *o, VALUE obj)
{
    st_data_t key = obj, value;
    VALUE id = id_of(o, obj);

    if (RBASIC(obj)->flags & FL_FINALIZE) {
        RBASIC(obj)->flags &= ~(VALUE)FL_FINALIZE;
        if (st_delete(o->finalizers, &key, &value)) {
            add_job(o, (struct job){ .id = id, .blocks = (VALUE)value });
        }
    }
    key = obj;
    if (st_delete(o->id_of, &key, &value)) st_delete(o->object_of, &value, NULL);
}

/* Those whose deaths the sweep does not tell are listed. */
static void
note(struct objspace *o, VALUE obj)
{
    if (hw_gc_object_kind((void *)obj) & HW_GC_FREED || RBASIC(obj)->flags & (FL_SEEN_OBJ_ID | FL_FINALIZE)) return;
    if (!ruby_push((void **)&o->unfreed, &o->unfreeds, &o->unfreed_room, sizeof obj, &obj)) rb_memerror();
}

static int
look_at_place(st_data_t place, st_data_t object, st_data_t context)
{
    hw_gc_tracer *tracer = (hw_gc_tracer *)context;
    VALUE *weak = (VALUE *)place;

    if (hw_gc_where(tracer, (void *)object) == NULL || RB_SPECIAL_CONST_P(*weak)) return ST_DELETE;
    if (hw_gc_where(tracer, (void *)*weak) != NULL) return ST_CONTINUE;
    *weak = Qundef;
    return ST_DELETE;
}

void
ruby_weak_pass(hw_gc_tracer *tracer, void *context)
{
    struct objspace *o = context;
    size_t kept = 0;

    for (size_t i = 0; i < o->unfreeds; i++) {
        VALUE obj = o->unfreed[i];
        if (hw_gc_where(tracer, (void *)obj) == NULL) ruby_object_died(o, obj);
        else o->unfreed[kept++] = obj;
    }
    o->unfreeds = kept;

    st_foreach(o->weak, look_at_place, (st_data_t)tracer);
}

void
rb_gc_impl_mark_weak(void *objspace, VALUE *place)
{
    struct objspace *o = objspace;

    pthread_mutex_lock(&o->weak_lock);
    st_insert(o->weak, (st_data_t)place, ruby_traced);
    pthread_mutex_unlock(&o->weak_lock);
}

void
rb_gc_impl_remove_weak(void *objspace, VALUE parent, VALUE *place)
{
    struct objspace *o = objspace;
    st_data_t key = (st_data_t)place;

    st_delete(o->weak, &key, NULL);
}

/* ---- finalizers ------------------------------------------------------------------ */

VALUE
rb_gc_impl_define_finalizer(void *objspace, VALUE obj, VALUE block)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    if (st_lookup(o->finalizers, obj, &blocks)) {
        for (long i = 0; i < RARRAY_LEN((VALUE)blocks); i++) {
            VALUE known = RARRAY_AREF((VALUE)blocks, i);
            if (rb_equal(known, block)) return known;
        }
        rb_ary_push((VALUE)blocks, block);
    }
    else {
        blocks = rb_ary_new_from_args(1, block);
        rb_obj_hide((VALUE)blocks);
        note(o, obj);
        st_insert(o->finalizers, obj, blocks);
        RBASIC(obj)->flags |= FL_FINALIZE;
    }
    return block;
}

void
rb_gc_impl_undefine_finalizer(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;
    st_data_t key = obj;

    st_delete(o->finalizers, &key, NULL);
    FL_UNSET(obj, FL_FINALIZE);
}

void
rb_gc_impl_copy_finalizer(void *objspace, VALUE dest, VALUE obj)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    if (!FL_TEST(obj, FL_FINALIZE) || !st_lookup(o->finalizers, obj, &blocks)) return;
    note(o, dest);
    st_insert(o->finalizers, dest, blocks); /* the same list, so that what is added to one is the other's, too */
    FL_SET(dest, FL_FINALIZE);
}

static int
finalize_now(st_data_t obj, st_data_t blocks, st_data_t context)
{
    struct objspace *o = (struct objspace *)context;
    VALUE id = rb_gc_impl_object_id(o, obj);

    FL_UNSET((VALUE)obj, FL_FINALIZE);
    run_finalizer(id, (VALUE)blocks);
    return ST_DELETE;
}

/* Every finalizer, due or not: the process ends. */
void
ruby_run_all_finalizers(struct objspace *o)
{
    while (o->finalizers->num_entries > 0) st_foreach(o->finalizers, finalize_now, (st_data_t)o);
    run_every_job(o);
}

/* ---- ids ---------------------------------------------------------------------------- */

VALUE
rb_gc_impl_object_id(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;
    unsigned int lock = rb_gc_vm_lock();
    VALUE id = id_of(o, obj);

    if (!FL_TEST(obj, FL_SEEN_OBJ_ID)) {
        note(o, obj);
        st_insert(o->id_of, obj, id);
        st_insert(o->object_of, id, obj);
        FL_SET(obj, FL_SEEN_OBJ_ID);
    }
    rb_gc_vm_unlock(lock);
    return id;
}

VALUE
rb_gc_impl_object_id_to_ref(void *objspace, VALUE id)
{
    struct objspace *o = objspace;
    st_data_t obj;

    if (FIXNUM_P(id) && st_lookup(o->object_of, id, &obj) && !rb_gc_impl_garbage_object_p(o, (VALUE)obj)) {
        return (VALUE)obj;
    }
    bool was = RTEST(rb_funcall(id, rb_intern("<"), 1, ULL2NUM(o->next_id)));
    rb_raise(rb_eRangeError, was ? "%+" PRIsVALUE " is recycled object" : "%+" PRIsVALUE " is not id value",
             rb_funcall(id, rb_intern("to_s"), 1, INT2FIX(10)));
}
