/*
** Finalizers, postponed frees, and weak places.
**
**   finalizers   object -> array of blocks    the arrays are roots
**
**   sweep finds a dead object with FL_FINALIZE --> job: its id, its array     --> run_jobs, with the GVL, later
**   rb_gc_obj_free must not free now           --> job: a function, its data  -/
**
** A slot is freed at once, because a job has all that it needs. The sweep reports a death if the
** object's kind is HW_GC_FREED. Other objects with an id or a finalizer are in a list, which is
** checked when all is marked.
**
** **Weak places** (WeakMap) lie in memory of malloc. Reported places are checked when all is
** marked: a place whose target is dead becomes Qundef. Ruby may free such places without a call, so
** places are known for one collection only. Minor collections do not trace old objects, except
** those that have places. If the object that has a place has died, the place is not read. Since 4.0
** some places lie in the objects that have them: each call cache has its class in such a place. A
** vector of these places suffices, because the object was traced and lives. Minor collections need
** not check the old ones, because a cache is younger than its class.
**
** **Locks.** Any Ractor may call these functions. The VM's lock protects the tables, also in a
** sweep. weak_lock protects the tables of weak places.
*/
#include "heapwright.h"

void
ruby_finalizers_init(struct objspace *o)
{
    o->finalizers = st_init_numtable();
    o->weak = st_init_numtable();
    o->weak_owners = st_init_numtable();
    pthread_mutex_init(&o->weak_lock, NULL);
    ruby_ids_init(o);
    o->run_jobs = rb_postponed_job_preregister(0, ruby_run_jobs, o);
}

static int
mark_value(st_data_t key, st_data_t value, st_data_t tracer)
{
    hw_gc_mark((hw_gc_tracer *)tracer, (void *)value);
    return ST_CONTINUE;
}

/* Calls `with` for each object that has weak places. It reads a copy, because `with` may add
   them again. */
static void
each_weak_owner(struct objspace *o, void (*with)(struct objspace *, VALUE))
{
    st_index_t count = o->weak_owners->num_entries;

    if (count == 0) return;
    st_data_t *owners = malloc(count * sizeof *owners);
    if (owners == NULL) rb_bug("heapwright: no memory for weak places");
    count = st_keys(o->weak_owners, owners, count);
    for (st_index_t i = 0; i < count; i++) with(o, owners[i]);
    free(owners);
}

static void
trace_owner(struct objspace *o, VALUE owner)
{
    ruby_traced = owner;
    rb_gc_mark_children(o, owner);
}

static void
update_owner(struct objspace *o, VALUE owner)
{
    st_data_t key = owner;

    if (!rb_gc_impl_object_moved_p(o, owner)) return;
    st_delete(o->weak_owners, &key, NULL);
    st_insert(o->weak_owners, rb_gc_impl_location(o, owner), 0);
}

void
ruby_finalizers_roots(struct objspace *o, hw_gc_tracer *tracer)
{
    /* In a major collection, live objects are traced anyway, and the others are to die. */
    if (o->last_was_minor) each_weak_owner(o, trace_owner);
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
    return RARRAY_AREF((VALUE)blocks, i + FIRST_BLOCK);
}

static void
run_finalizer(VALUE id, VALUE blocks)
{
    rb_gc_run_obj_finalizer(id, RARRAY_LEN(blocks) - FIRST_BLOCK, block_at, (void *)blocks);
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

/* The id that the object's finalizers get. */
static VALUE
id_of(struct objspace *o, VALUE obj, VALUE blocks)
{
#if RUBY_IS_4
    return RARRAY_AREF(blocks, 0);
#else
    return ruby_id_of(o, obj);
#endif
}

/* Called for a dead object that had an id or a finalizer. The object can be read once more. */
void
ruby_object_died(struct objspace *o, VALUE obj)
{
    st_data_t key = obj, blocks;

    if (RBASIC(obj)->flags & FL_FINALIZE) {
        RBASIC(obj)->flags &= ~(VALUE)FL_FINALIZE;
        if (st_delete(o->finalizers, &key, &blocks)) {
            add_job(o, (struct job){ .id = id_of(o, obj, (VALUE)blocks), .blocks = (VALUE)blocks });
        }
    }
    ruby_forget_id(o, obj);
}

/* Lists the object if the sweep does not report its death. */
bool
ruby_note(struct objspace *o, VALUE obj, VALUE flag)
{
    bool known = hw_gc_object_kind((void *)obj) & HW_GC_FREED || IS_NOTED(RBASIC(obj)->flags);

    if (!known && !ruby_push((void **)&o->unfreed, &o->unfreeds, &o->unfreed_room, sizeof obj, &obj)) return false;
    RBASIC(obj)->flags |= flag;
    return true;
}

static int
look_at_place(st_data_t place, st_data_t object, st_data_t context)
{
    hw_gc_tracer *tracer = (hw_gc_tracer *)context;
    VALUE *weak = (VALUE *)place;

    /* A place of the roots (object 0) is in the VM, which lives. */
    if (object != 0 && hw_gc_where(tracer, (void *)object) == NULL) return ST_DELETE;
    if (RB_SPECIAL_CONST_P(*weak)) return ST_DELETE;
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

    for (size_t i = 0; i < o->weaks_within; i++) {
        VALUE *weak = o->weak_within[i];
        if (!RB_SPECIAL_CONST_P(*weak) && hw_gc_where(tracer, (void *)*weak) == NULL) *weak = Qundef;
    }
    o->weaks_within = 0;
    st_foreach(o->weak, look_at_place, (st_data_t)tracer);
    st_foreach(o->weak_owners, look_at_owner, (st_data_t)tracer);
}

void
ruby_forget_weak_places(struct objspace *o)
{
    st_clear(o->weak);
    o->weaks_within = 0;
}

void
ruby_finalizers_update(struct objspace *o)
{
    each_weak_owner(o, update_owner);
    for (size_t i = 0; i < o->unfreeds; i++) o->unfreed[i] = rb_gc_impl_location(o, o->unfreed[i]);
    /* Places may have moved. The next collection finds them again. */
    ruby_forget_weak_places(o);
}

void
rb_gc_impl_mark_weak(void *objspace, VALUE *place)
{
    struct objspace *o = objspace;

    pthread_mutex_lock(&o->weak_lock);
    if ((VALUE)place - ruby_traced < NARROWEST) {
        /* Without memory, the place is not weak in this collection. */
        if (!ruby_push((void **)&o->weak_within, &o->weaks_within, &o->weak_room, sizeof place, &place)) {
            hw_gc_mark(ruby_tracer, (void *)*place);
        }
    }
    else {
        st_insert(o->weak, (st_data_t)place, ruby_traced);
        if (ruby_traced != 0) st_insert(o->weak_owners, ruby_traced, 0);
    }
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
    unsigned int lock = RB_GC_VM_LOCK();
    bool found = st_lookup(o->finalizers, obj, blocks);

    RB_GC_VM_UNLOCK(lock);
    return found;
}

static void
set_blocks(struct objspace *o, VALUE obj, VALUE blocks)
{
    unsigned int lock = RB_GC_VM_LOCK();
    bool noted = ruby_note(o, obj, FL_FINALIZE);

    if (noted) st_insert(o->finalizers, obj, blocks);
    RB_GC_VM_UNLOCK(lock);
    if (!noted) rb_memerror();
}

VALUE
rb_gc_impl_define_finalizer(void *objspace, VALUE obj, VALUE block)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    if (look_up(o, obj, &blocks)) {
        for (long i = FIRST_BLOCK; i < RARRAY_LEN((VALUE)blocks); i++) {
            VALUE known = RARRAY_AREF((VALUE)blocks, i);
            if (rb_equal(known, block)) return known;
        }
        rb_ary_push((VALUE)blocks, block);
        FL_SET(obj, FL_FINALIZE); /* its finalizers may be running, and this is one more */
    }
    else {
        blocks = BLOCKS_OF(obj, block);
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
    unsigned int lock = RB_GC_VM_LOCK();

    st_delete(o->finalizers, &key, NULL);
    FL_UNSET(obj, FL_FINALIZE);
    RB_GC_VM_UNLOCK(lock);
}

void
rb_gc_impl_copy_finalizer(void *objspace, VALUE dest, VALUE obj)
{
    struct objspace *o = objspace;
    st_data_t blocks;

    if (!FL_TEST(obj, FL_FINALIZE) || !look_up(o, obj, &blocks)) return;
#if RUBY_IS_4
    /* A list of its own, because the list has the object's id. */
    blocks = rb_ary_dup((VALUE)blocks);
    rb_obj_hide((VALUE)blocks);
    RARRAY_ASET((VALUE)blocks, 0, rb_obj_id(dest));
#else
    /* The same list, so that a block that one object gets is the other's, too. */
#endif
    set_blocks(o, dest, (VALUE)blocks);
}

static int
finalize_now(st_data_t obj, st_data_t blocks, st_data_t context)
{
    struct objspace *o = (struct objspace *)context;
    FL_UNSET((VALUE)obj, FL_FINALIZE);
    run_finalizer(id_of(o, obj, (VALUE)blocks), (VALUE)blocks);
    return ST_DELETE;
}

/* Runs every finalizer, due or not, because the process ends. */
void
ruby_run_all_finalizers(struct objspace *o)
{
    while (o->finalizers->num_entries > 0) st_foreach(o->finalizers, finalize_now, (st_data_t)o);
    run_every_job(o);
}
