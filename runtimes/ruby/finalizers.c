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
** marked: what is dead is Qundef from then on, and Ruby may give such places back without a word. So places are known for one collection only;
** minor ones, which do not look at old objects, look at those that have places. A place whose object has died is not read.
**
** **Locks.** Any Ractor may come: tables are changed under the VM's lock, as the sweep does; weak ones under their own.
*/
#include "heapwright.h"

void
ruby_finalizers_init(struct objspace *o)
{
    o->finalizers = st_init_numtable();
    o->id_of = st_init_numtable();
    o->object_of = st_init_numtable();
    o->weak = st_init_numtable();
    o->weak_owners = st_init_numtable();
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

/* Has all that have weak places report them. In a major collection those that live are traced anyway, and the others are to die. */
static void
trace_weak_owners(struct objspace *o)
{
    st_index_t count = o->weak_owners->num_entries;

    if (!o->last_was_minor || count == 0) return;
    /* From a copy: they are added again. */
    st_data_t *owners = malloc(count * sizeof *owners);
    if (owners == NULL) rb_bug("heapwright: no memory for weak places");
    count = st_keys(o->weak_owners, owners, count);
    for (st_index_t i = 0; i < count; i++) {
        ruby_traced = owners[i];
        rb_gc_mark_children(o, owners[i]);
    }
    free(owners);
}

void
ruby_finalizers_roots(struct objspace *o, hw_gc_tracer *tracer)
{
    trace_weak_owners(o);
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

bool
ruby_begin_jobs(struct objspace *o)
{
    if (atomic_exchange(&o->finalizing, true)) return false;
    o->finalizing_thread = pthread_self();
    return true;
}

void
ruby_end_jobs(struct objspace *o)
{
    atomic_store(&o->finalizing, false);
}

/* In the child: a thread that ran jobs may be gone. */
void
ruby_jobs_after_fork(struct objspace *o)
{
    if (!atomic_load(&o->finalizing) || pthread_equal(o->finalizing_thread, pthread_self())) return;
    ruby_end_jobs(o);
    if (atomic_load(&o->jobs) != NULL) rb_postponed_job_trigger(o->run_jobs);
}

void
ruby_run_jobs(void *context)
{
    struct objspace *o = context;

    if (!ruby_begin_jobs(o)) return;
    rb_gc_set_pending_interrupt();
    run_every_job(o);
    rb_gc_unset_pending_interrupt();
    ruby_end_jobs(o);
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

/* An object gets an id or a finalizer (flag): if the sweep does not tell of its death, it is listed. Under the VM's lock. False: there is no
   memory. */
static bool
note(struct objspace *o, VALUE obj, VALUE flag)
{
    bool known = hw_gc_object_kind((void *)obj) & HW_GC_FREED || RBASIC(obj)->flags & (FL_SEEN_OBJ_ID | FL_FINALIZE);

    if (!known && !ruby_push((void **)&o->unfreed, &o->unfreeds, &o->unfreed_room, sizeof obj, &obj)) return false;
    RBASIC(obj)->flags |= flag;
    return true;
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

static int
look_at_owner(st_data_t object, st_data_t value, st_data_t context)
{
    return hw_gc_where((hw_gc_tracer *)context, (void *)object) != NULL ? ST_CONTINUE : ST_DELETE;
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
    st_foreach(o->weak_owners, look_at_owner, (st_data_t)tracer);
}

void
rb_gc_impl_mark_weak(void *objspace, VALUE *place)
{
    struct objspace *o = objspace;

    pthread_mutex_lock(&o->weak_lock);
    st_insert(o->weak, (st_data_t)place, ruby_traced);
    st_insert(o->weak_owners, ruby_traced, 0);
    pthread_mutex_unlock(&o->weak_lock);
}

void
rb_gc_impl_remove_weak(void *objspace, VALUE parent, VALUE *place)
{
    struct objspace *o = objspace;
    st_data_t key = (st_data_t)place;

    pthread_mutex_lock(&o->weak_lock);
    st_delete(o->weak, &key, NULL);
    pthread_mutex_unlock(&o->weak_lock);
}

/* ---- finalizers ------------------------------------------------------------------ */

/* The blocks of an object, if it has any. */
static bool
look_up(struct objspace *o, VALUE obj, st_data_t *blocks)
{
    unsigned int lock = rb_gc_vm_lock();
    bool found = st_lookup(o->finalizers, obj, blocks);

    rb_gc_vm_unlock(lock);
    return found;
}

static void
set_blocks(struct objspace *o, VALUE obj, VALUE blocks)
{
    unsigned int lock = rb_gc_vm_lock();
    bool noted = note(o, obj, FL_FINALIZE);

    if (noted) st_insert(o->finalizers, obj, blocks);
    rb_gc_vm_unlock(lock);
    if (!noted) rb_memerror();
}

VALUE
rb_gc_impl_define_finalizer(void *objspace, VALUE obj, VALUE block)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    if (look_up(o, obj, &blocks)) {
        for (long i = 0; i < RARRAY_LEN((VALUE)blocks); i++) {
            VALUE known = RARRAY_AREF((VALUE)blocks, i);
            if (rb_equal(known, block)) return known;
        }
        rb_ary_push((VALUE)blocks, block);
        FL_SET(obj, FL_FINALIZE); /* its finalizers may be running, and this is one more */
    }
    else {
        blocks = rb_ary_new_from_args(1, block);
        rb_obj_hide((VALUE)blocks);
        set_blocks(o, obj, (VALUE)blocks);
    }
    return block;
}

void
rb_gc_impl_undefine_finalizer(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;
    st_data_t key = obj;
    unsigned int lock = rb_gc_vm_lock();

    st_delete(o->finalizers, &key, NULL);
    FL_UNSET(obj, FL_FINALIZE);
    rb_gc_vm_unlock(lock);
}

void
rb_gc_impl_copy_finalizer(void *objspace, VALUE dest, VALUE obj)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    /* The same list, so that what is added to one is the other's, too. */
    if (FL_TEST(obj, FL_FINALIZE) && look_up(o, obj, &blocks)) set_blocks(o, dest, (VALUE)blocks);
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
    bool noted = note(o, obj, FL_SEEN_OBJ_ID);

    if (noted) {
        st_insert(o->id_of, obj, id);
        st_insert(o->object_of, id, obj);
    }
    rb_gc_vm_unlock(lock);
    if (!noted) rb_memerror();
    return id;
}

VALUE
rb_gc_impl_object_id_to_ref(void *objspace, VALUE id)
{
    struct objspace *o = objspace;
    st_data_t obj;
    unsigned int lock = rb_gc_vm_lock();
    bool found = FIXNUM_P(id) && st_lookup(o->object_of, id, &obj) && !rb_gc_impl_garbage_object_p(o, (VALUE)obj);

    rb_gc_vm_unlock(lock);
    if (found) return (VALUE)obj;
    bool was = RTEST(rb_funcall(id, rb_intern("<"), 1, ULL2NUM(o->next_id)));
    rb_raise(rb_eRangeError, was ? "%+" PRIsVALUE " is recycled object" : "%+" PRIsVALUE " is not id value",
             rb_funcall(id, rb_intern("to_s"), 1, INT2FIX(10)));
}
