/*
** Boot, Ractors, allocation, collections, marking, barriers and forks.
**
**   new_obj --> slots at hand (hw_gc_try)                      no lock, no call
**          \--> VM's lock --> hw_gc_alloc --> may collect      the thread is the only one at work, or has stopped
**                                                              the others by the VM's barrier
**
** **Stopping.** Ruby stops its own threads: a thread that holds the VM's lock and has waited at its
** barrier is the only one at work. Mutators are not polled, so a collection begins only in such a
** thread. With one Ractor, the GVL suffices, and hw_gc_alloc collects in the call. With several
** Ractors an allocation collects nothing (collections are deferred). If a collection is owed, the
** thread waits at the barrier first, and the other mutators are away during the collection.
**
** **Marking.** Ruby's functions that report references take no tracer, so the tracer is in a
** variable of the thread. Most objects are arrays, strings and plain objects: their references are
** reported here, those of other objects by rb_gc_mark_children. Only while o->compacting does it
** matter which objects may move (see compaction.c).
**
** **Kinds.** rb_gc_obj_free frees an object and must read it, so the kind is HW_GC_FREED. Floats
** and internal objects that never have anything to free are of other kinds. Of their pages the
** sweep reads only the bitmaps.
*/
#include "heapwright.h"

_Thread_local hw_gc_tracer *ruby_tracer __attribute__((tls_model("initial-exec")));
_Thread_local VALUE ruby_traced __attribute__((tls_model("initial-exec")));
_Thread_local bool ruby_is_freeing __attribute__((tls_model("initial-exec")));

/* Types whose objects a heap dump names by their class. */
#define CLASS_IS_NAMED (1u << T_OBJECT | 1u << T_STRUCT | 1u << T_DATA | 1u << T_STRING | 1u << T_ARRAY | 1u << T_HASH)

static struct objspace the;

static void before_any_fork(void);

/* ---- marking ---------------------------------------------------------- */

static inline void
mark_all(hw_gc_tracer *tracer, const VALUE *at, const VALUE *end)
{
    for (; at < end; at++) {
        if (!RB_SPECIAL_CONST_P(*at)) hw_gc_mark(tracer, (void *)*at);
    }
}

static void
trace(hw_gc_tracer *tracer, void *object, void *data)
{
    struct objspace *o = data;
    VALUE obj = (VALUE)object;
    VALUE flags = RBASIC(obj)->flags;

    if (flags == 0) return; /* not an object yet */
    if (RB_LIKELY(!o->compacting) && !HAS_VARIABLES_BESIDE(flags)) {
        switch (flags & RUBY_T_MASK) {
          case T_STRING:
            if (flags & RSTRING_NOEMBED && flags & STRING_IS_SHARED) break;
            hw_gc_mark(tracer, (void *)RBASIC(obj)->klass);
            return;
          case T_ARRAY: {
            const VALUE *at, *end;
            if (flags & RARRAY_EMBED_FLAG) {
                at = RARRAY(obj)->as.ary;
                end = at + ((flags & RARRAY_EMBED_LEN_MASK) >> RARRAY_EMBED_LEN_SHIFT);
            }
            else if (flags & ARRAY_IS_SHARED) {
                break;
            }
            else {
                at = RARRAY(obj)->as.heap.ptr;
                end = at + RARRAY(obj)->as.heap.len;
            }
            hw_gc_mark(tracer, (void *)RBASIC(obj)->klass);
            mark_all(tracer, at, end);
            return;
          }
          case T_OBJECT: {
            if (HAS_TABLE(obj)) break;
            VALUE klass = RBASIC(obj)->klass;
            attr_index_t count = VARIABLES(obj);
            const VALUE *at = HAS_VARIABLES_WITHIN(flags) ? ROBJECT(obj)->as.ary : VARIABLES_BESIDE(obj);
            hw_gc_mark(tracer, (void *)klass);
            mark_all(tracer, at, at + count);
            /* Ruby chooses the slots of later objects by this count. */
            if (CLASS_EXTENSION(klass)->max_iv_count < count) CLASS_EXTENSION(klass)->max_iv_count = count;
            return;
          }
          case T_STRUCT: {
            const VALUE *at = RSTRUCT_CONST_PTR(obj);
            hw_gc_mark(tracer, (void *)RBASIC(obj)->klass);
            mark_all(tracer, at, at + RSTRUCT_LEN(obj));
            return;
          }
          case T_FLOAT:
          case T_BIGNUM:
            return;
          default:
            break;
        }
    }
    ruby_tracer = tracer;
    ruby_traced = obj;
    rb_gc_mark_children(o, obj);
}

static void
roots(hw_gc_tracer *tracer, void *data)
{
    struct objspace *o = data;

    ruby_tracer = tracer;
    ruby_traced = 0;
    rb_gc_mark_roots(o, NULL);
    ruby_finalizers_roots(o, tracer);
}

void
rb_gc_impl_mark(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;

    if (RB_UNLIKELY(o->compacting) && ruby_may_move(obj)) hw_gc_mark_movable(ruby_tracer, (void *)obj);
    else hw_gc_mark(ruby_tracer, (void *)obj);
}

void
rb_gc_impl_mark_and_move(void *objspace, VALUE *place)
{
    struct objspace *o = objspace;

    if (RB_UNLIKELY(o->updates)) *place = rb_gc_impl_location(o, *place);
    else rb_gc_impl_mark(o, *place);
}

void
rb_gc_impl_mark_and_pin(void *objspace, VALUE obj)
{
    hw_gc_mark(ruby_tracer, (void *)obj);
}

void
rb_gc_impl_mark_maybe(void *objspace, VALUE obj)
{
    hw_gc_mark_maybe(ruby_tracer, (void *)obj);
}

/* ---- freeing ---------------------------------------------------------- */

/* Whether an object has no memory beside its slot. */
static inline bool
is_bare(VALUE obj, VALUE flags)
{
    if (HAS_VARIABLES_BESIDE(flags) || flags & FL_FINALIZE) return false;
    switch (flags & RUBY_T_MASK) {
      case T_STRING:
        return !(flags & (RSTRING_NOEMBED | STRING_IS_INTERNED));
      case T_ARRAY:
        return flags & RARRAY_EMBED_FLAG;
      case T_OBJECT:
        return HAS_VARIABLES_WITHIN(flags) && !HAS_TABLE(obj) && !HAS_ID(flags);
      case T_STRUCT:
        return flags & RSTRUCT_EMBED_LEN_MASK;
      case T_HASH:
        return !(flags & HASH_IS_LARGE);
      case T_FLOAT:
      case T_RATIONAL:
      case T_COMPLEX:
        return true;
      case T_IMEMO:
        return IMEMO_IS_BARE(flags);
      default:
        return false;
    }
}

void
ruby_free_object(struct objspace *o, VALUE obj)
{
    ruby_is_freeing = true;
    if (IS_NOTED(RBASIC(obj)->flags)) ruby_object_died(o, obj);
    rb_gc_obj_free_vm_weak_references(obj);
    rb_gc_obj_free(o, obj); /* work that it may not do now becomes a job */
    RBASIC(obj)->flags = 0;
    ruby_is_freeing = false;
}

static void
freed(void *object, size_t size, void *data)
{
    struct objspace *o = data;
    VALUE obj = (VALUE)object;
    VALUE flags = RBASIC(obj)->flags;

    if (o->ended) return; /* the end of the process frees objects itself */
    if (RB_UNLIKELY(rb_gc_event_hook_required_p(RUBY_INTERNAL_EVENT_FREEOBJ)) && flags != 0) {
        rb_gc_event_hook(obj, RUBY_INTERNAL_EVENT_FREEOBJ);
    }
    else if (flags == 0 || is_bare(obj, flags)) {
        return;
    }
    ruby_free_object(o, obj);
    if (o->freed_bytes >= FEW_EXTERNAL) {
        hw_gc_account(o->heap, -(ptrdiff_t)o->freed_bytes);
        o->freed_bytes = 0;
    }
}

/* ---- events of collections --------------------------------------------- */

static void
heard(const hw_gc_event *event, void *data)
{
    struct objspace *o = data;
    bool begins = event->edge == HW_GC_EVENT_BEGINS;

    switch (event->span) {
      case HW_GC_SPAN_COLLECTION:
        o->collecting = begins;
        if (begins) {
            o->last_was_minor = event->flags & HW_GC_EVENT_MINOR;
            o->last_reason = o->reason;
            ruby_forget_weak_places(o);
            rb_gc_event_hook(0, RUBY_INTERNAL_EVENT_GC_START);
        }
        else {
            o->compare = !o->last_was_minor;
            if (o->compare && ruby_compacts_by_itself(o) && !o->compacting) o->compaction_due = true;
            rb_gc_event_hook(0, RUBY_INTERNAL_EVENT_GC_END_SWEEP);
        }
        break;
      case HW_GC_SPAN_TRACE:
        if (begins) break;
        for (size_t pool = 0; pool < o->pools; pool++) o->allocated_before[pool] = ruby_allocated(o, pool);
        rb_gc_event_hook(0, RUBY_INTERNAL_EVENT_GC_END_MARK);
        break;
      case HW_GC_SPAN_PAUSE:
        o->during_gc = begins;
        ruby_profiler_heard(o, begins);
        rb_gc_event_hook(0, begins ? RUBY_INTERNAL_EVENT_GC_ENTER : RUBY_INTERNAL_EVENT_GC_EXIT);
        break;
      default:
        break;
    }
}

/* ---- stopping ----------------------------------------------------------- */

/* The mutator of a cache. A thread of the cache's Ractor calls this, and the first such
   thread enters the mutator. */
static hw_gc_mutator *
enter(struct cache *cache)
{
    if (RB_UNLIKELY(!cache->entered)) {
        hw_gc_enter(cache->mutator);
        cache->entered = true;
    }
    return cache->mutator;
}

hw_gc_mutator *
ruby_mutator(struct objspace *o)
{
    return enter(rb_gc_multi_ractor_p() ? rb_gc_get_ractor_newobj_cache() : o->first);
}

static void
others(struct objspace *o, hw_gc_mutator *mine, void (*with)(hw_gc_mutator *))
{
    for (struct cache *cache = o->caches; cache; cache = cache->next) {
        if (cache->entered && cache->mutator != mine) with(cache->mutator);
    }
}

void
ruby_stopped(struct objspace *o, enum reason reason, void (*with)(struct objspace *, hw_gc_mutator *, void *),
             void *context)
{
    unsigned int lock = RB_GC_VM_LOCK();
    bool several = rb_gc_multi_ractor_p();
    hw_gc_mutator *mutator = ruby_mutator(o);

    rb_gc_vm_barrier();
    rb_gc_save_machine_context();
    if (several) others(o, mutator, hw_gc_leave);
    o->reason = reason;
    with(o, mutator, context);
    if (several) others(o, mutator, hw_gc_enter);
    RB_GC_VM_UNLOCK(lock);
}

static void
collect(struct objspace *o, hw_gc_mutator *mutator, void *major)
{
    ruby_tell_external(o);
    if (*(bool *)major && (o->full_mark_allowed || RTEST(o->stress))) hw_gc_collect(mutator);
    else hw_gc_collect_minor(mutator);
    ruby_tell_external(o);
}

/* Runs a collection from its beginning to its end. */
static void
collect_now(struct objspace *o, enum reason reason, bool major)
{
    ruby_stopped(o, reason, collect, &major);
}

static void
step(struct objspace *o, hw_gc_mutator *mutator, void *ns)
{
    hw_gc_step(mutator, *(uint64_t *)ns);
    ruby_tell_external(o);
}

/* Works for about `ns` nanoseconds on owed collections. */
static void
step_now(struct objspace *o, enum reason reason, uint64_t ns)
{
    ruby_stopped(o, reason, step, &ns);
}

/* The budget of a step that ends all owed work. */
#define ALL (UINT64_MAX / 4)

bool
ruby_may_collect(struct objspace *o)
{
    return !o->disabled && !rb_gc_impl_during_gc_p(o);
}

static void
pay(struct objspace *o, hw_gc_mutator *mutator, void *bytes)
{
    hw_gc_pay(mutator, *(size_t *)bytes);
    ruby_tell_external(o);
}

void
ruby_pay_in_malloc(struct objspace *o, size_t bytes)
{
    if (RTEST(o->stress)) collect_now(o, BY_STRESS, true);
    else if (!rb_gc_multi_ractor_p()) ruby_stopped(o, BY_MALLOC, pay, &bytes);
    /* Other Ractors are stopped once, as by an allocation. */
    else if (hw_gc_owed(o->first->mutator)) step_now(o, BY_MALLOC, ALL);
}

void
ruby_collect_in_malloc(struct objspace *o)
{
    collect_now(o, BY_MALLOC, true);
}

void
rb_gc_impl_start(void *objspace, bool full_mark, bool immediate_mark, bool immediate_sweep, bool compact)
{
    struct objspace *o = objspace;

    if (rb_gc_impl_during_gc_p(o)) return;
    o->immediate_sweep = immediate_sweep;
    if (full_mark && (compact || ruby_compacts_by_itself(o))) ruby_compact(o, BY_METHOD);
    else collect_now(o, BY_METHOD, full_mark);
    ruby_run_jobs(o);
}

bool
rb_gc_impl_during_gc_p(void *objspace)
{
    return ((struct objspace *)objspace)->during_gc || ruby_is_freeing;
}

void
rb_gc_impl_gc_enable(void *objspace)
{
    ((struct objspace *)objspace)->disabled = false;
}

void
rb_gc_impl_gc_disable(void *objspace, bool finish_current_gc)
{
    struct objspace *o = objspace;

    /* Ends the sweep, too, even if collections are disabled already: Ruby's table of ids relies
       on it. */
    if (finish_current_gc && !rb_gc_impl_during_gc_p(o) && (o->collecting || (!o->disabled && hw_gc_owed(o->first->mutator)))) {
        step_now(o, BY_METHOD, ALL);
    }
    o->disabled = true;
}

bool
rb_gc_impl_gc_enabled_p(void *objspace)
{
    return !((struct objspace *)objspace)->disabled;
}

void
rb_gc_impl_stress_set(void *objspace, VALUE flag)
{
    ((struct objspace *)objspace)->stress = flag;
}

VALUE
rb_gc_impl_stress_get(void *objspace)
{
    return ((struct objspace *)objspace)->stress;
}

/* ---- allocating ---------------------------------------------------------- */

/* For each type: the bits in which an object's kind differs from HW_GC_FREED. */
static const uint8_t kind_differs[RUBY_T_MASK + 1] = {
#if NUMBERS_ARE_LEAVES
    [T_FLOAT] = HW_GC_LEAF ^ HW_GC_FREED,
    [T_BIGNUM] = HW_GC_LEAF,
    [T_SYMBOL] = HW_GC_LEAF,
#endif
};

/* The kind of a new object. Internal objects of some types need no free: see rb_imemo_free. */
static inline uint32_t
kind_of(VALUE flags)
{
    if ((flags & RUBY_T_MASK) != T_IMEMO) return HW_GC_FREED ^ kind_differs[flags & RUBY_T_MASK];
    return IMEMO_IS_FREED >> (flags >> FL_USHIFT & IMEMO_MASK) & 1 ? HW_GC_FREED : HW_GC_TRACED;
}

RBIMPL_ATTR_NOINLINE()
static VALUE *
allocate(struct objspace *o, struct cache *cache, size_t size, uint32_t kind)
{
    unsigned int lock = RB_GC_CR_LOCK();
    bool several = rb_gc_multi_ractor_p();
    bool may = ruby_may_collect(o);

    enter(cache);
    if (RB_UNLIKELY(o->compare)) {
        o->compare = false;
        ruby_compare_external(o);
    }
    else {
        ruby_tell_external(o);
    }
    if (may && RTEST(o->stress)) ruby_compacts_by_itself(o) ? ruby_compact(o, BY_STRESS) : collect_now(o, BY_STRESS, true);
    else if (may && RB_UNLIKELY(o->compaction_due) && ruby_compacts_by_itself(o)) ruby_compact(o, BY_NEWOBJ);
    else if (may && several && (o->collecting || hw_gc_owed(cache->mutator))) step_now(o, BY_NEWOBJ, ALL);
    /* Even if collections are disabled, the allocation may sweep. A sweep changes tables of the
       VM, which since 4.0 are read without a lock. */
    if (RUBY_IS_4 && RB_UNLIKELY(several) && o->collecting) rb_gc_vm_barrier();
    bool collects = may && !several;
    if (collects) {
        o->reason = BY_NEWOBJ;
        rb_gc_save_machine_context();
    }
    else {
        hw_gc_defer(cache->mutator);
    }
    void *object = hw_gc_alloc(cache->mutator, size, kind);
    if (!collects) hw_gc_resume(cache->mutator);
    RB_GC_CR_UNLOCK(lock);
    if (object == NULL) rb_memerror();
    return object;
}

static inline VALUE
fill(struct objspace *o, struct cache *cache, VALUE *object, VALUE klass, VALUE flags, FIRST_WORDS size_t size)
{
    cache->allocated[o->pool_of[(size + 7) / 8]]++;
    object[0] = flags;
    object[1] = klass;
    object[2] = FIRST_WORD(1);
    object[3] = FIRST_WORD(2);
    object[4] = FIRST_WORD(3);
    return (VALUE)object;
}

/* The slow path: no slot is at hand, the object has no barriers, or GC.stress is on. It is a
   function of its own, so that the fast path saves no registers. */
RBIMPL_ATTR_NOINLINE()
static VALUE
new_obj_slowly(struct objspace *o, struct cache *cache, VALUE klass, VALUE flags, FIRST_WORDS
               bool wb_protected, size_t size)
{
    uint32_t kind = kind_of(flags);
    VALUE *object = RTEST(o->stress) ? NULL : hw_gc_try(cache->mutator, size, kind);

    if (object == NULL) object = allocate(o, cache, size, kind);
    if (!wb_protected) flags |= NO_BARRIERS;
    fill(o, cache, object, klass, flags, PASS_FIRST_WORDS size);
    if (!wb_protected && !hw_gc_unprotect(cache->mutator, object)) rb_memerror();
    return (VALUE)object;
}

VALUE
rb_gc_impl_new_obj(void *objspace, void *cache_pointer, VALUE klass, VALUE flags, FIRST_WORDS
                   bool wb_protected, size_t size)
{
    struct objspace *o = objspace;
    struct cache *cache = cache_pointer;
    if (size < NARROWEST) size = NARROWEST; /* some ask for two words, and get as much as from Ruby's own collector */

    if (RB_LIKELY(!RTEST(o->stress) && wb_protected)) {
        VALUE *object = hw_gc_try(cache->mutator, size, kind_of(flags));
        if (RB_LIKELY(object != NULL)) return fill(o, cache, object, klass, flags, PASS_FIRST_WORDS size);
    }
    return new_obj_slowly(o, cache, klass, flags, PASS_FIRST_WORDS wb_protected, size);
}

size_t
rb_gc_impl_obj_slot_size(VALUE obj)
{
    return hw_gc_slot_of(the.first->mutator, (void *)obj);
}

size_t *
rb_gc_impl_heap_sizes(void *objspace)
{
    return ((struct objspace *)objspace)->sizes;
}

size_t
rb_gc_impl_heap_id_for_size(void *objspace, size_t size)
{
    return ((struct objspace *)objspace)->pool_of[(size + 7) / 8];
}

bool
rb_gc_impl_size_allocatable_p(size_t size)
{
    return size <= WIDEST;
}

/* ---- barriers ------------------------------------------------------------- */

/* Data that all mutators share is read from the main Ractor's. Only a thread that has something
   to report asks for its own mutator. */
static inline bool
matters(VALUE parent)
{
    hw_gc_mutator *any = the.first->mutator;
    uint32_t barrier = *(volatile uint32_t *)&any->barrier;
    return RB_UNLIKELY(barrier != 0) && hw_gc_has_mark(any, (void *)parent);
}

void
rb_gc_impl_writebarrier(void *objspace, VALUE a, VALUE b)
{
    struct objspace *o = objspace;

    if (!RB_SPECIAL_CONST_P(b) && matters(a)) hw_gc_shade(ruby_mutator(o), (void *)a, (void *)b);
}

void
rb_gc_impl_writebarrier_unprotect(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;

    if (RBASIC(obj)->flags & NO_BARRIERS) return;
    RBASIC(obj)->flags |= NO_BARRIERS;
    if (!hw_gc_unprotect(ruby_mutator(o), (void *)obj)) rb_memerror();
}

void
rb_gc_impl_writebarrier_remember(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;

    if (matters(obj)) hw_gc_touched(ruby_mutator(o), (void *)obj);
}

void
rb_gc_impl_copy_attributes(void *objspace, VALUE dest, VALUE obj)
{
    if (RBASIC(obj)->flags & NO_BARRIERS) rb_gc_impl_writebarrier_unprotect(objspace, dest);
    rb_gc_impl_copy_finalizer(objspace, dest, obj);
}

/* ---- boot ------------------------------------------------------------------ */

/* The name of an object's class, if it has one; else of its type. Nothing is allocated: a name is the class's own string. */
static const char *
type_name(const void *object, void *data)
{
    VALUE klass = RBASIC((VALUE)object)->klass;

    if (CLASS_IS_NAMED >> (RBASIC((VALUE)object)->flags & RUBY_T_MASK) & 1) {
        while (klass != 0 && RB_FL_ANY_RAW(klass, FL_SINGLETON)) klass = SUPERCLASS(klass);
        VALUE name = klass != 0 ? CLASS_EXTENSION(klass)->classpath : 0;
        if (name != 0 && !RB_SPECIAL_CONST_P(name) && RB_BUILTIN_TYPE(name) == T_STRING) return RSTRING_PTR(name);
    }
    return ruby_type_name(RBASIC((VALUE)object)->flags & RUBY_T_MASK) + strlen("T_");
}

const char *
ruby_type_name(unsigned type)
{
    switch (type) {
#define NAME(type) case type: return #type;
        NAME(T_OBJECT) NAME(T_CLASS) NAME(T_MODULE) NAME(T_FLOAT) NAME(T_STRING) NAME(T_REGEXP) NAME(T_ARRAY)
        NAME(T_HASH) NAME(T_STRUCT) NAME(T_BIGNUM) NAME(T_FILE) NAME(T_DATA) NAME(T_MATCH) NAME(T_COMPLEX)
        NAME(T_RATIONAL) NAME(T_SYMBOL) NAME(T_IMEMO) NAME(T_ICLASS)
#undef NAME
      default:
        return "T_?";
    }
}

/* Reads a number from an environment variable. Without one, the value stays. */
static void
number(const char *name, double *value)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL || *text == '\0') return;
    double given = strtod(text, &end);
    if (*end == '\0' && given > 0) *value = given;
    else fprintf(stderr, "heapwright: %s=%s is no number above 0, and is passed over\n", name, text);
}

/* RUBY_HEAPWRIGHT=word,word,...: settings for which Ruby has no variable. */
static void
configure(hw_gc_options *options)
{
    const char *text = getenv("RUBY_HEAPWRIGHT");

    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        char word[32] = {0};
        unsigned long value = 0;
        if (length < sizeof word) memcpy(word, text, length);
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            value = strtoul(equals + 1, NULL, 10);
        }
        if (!strcmp(word, "step")) {
            options->incremental = value != 0;
            options->step_ns = value * 1000;
        }
        else if (!strcmp(word, "generations")) options->generations = value != 0;
        else if (!strcmp(word, "markers")) options->markers = (uint32_t)value;
        else if (!strcmp(word, "verify")) options->verify |= HW_GC_VERIFY_HEAP | HW_GC_VERIFY_BARRIERS;
        else if (length > 0) {
            fprintf(stderr, "heapwright: RUBY_HEAPWRIGHT has the words step=MICROSECONDS, generations=0, markers=N "
                            "and verify; '%.*s' is none of them\n", (int)length, text);
        }
        text += length;
        text += *text == ',';
    }
}

void *
rb_gc_impl_objspace_alloc(void)
{
    return &the;
}

void
rb_gc_impl_objspace_init(void *objspace)
{
    struct objspace *o = objspace;
    hw_gc_options options = {
        .size = sizeof options,
        .layout = HW_GC_LAYOUT_RUBY,
        .incremental = true,
        .step_ns = 1000000,
        .generations = true,
        .markers = 1,
        .factor_percent = 140,
        .least = 2 << 20,
        .uncleared = true, /* Ruby writes all that a mark function reads, because its own collector clears nothing */
    };
    hw_gc_runtime runtime = {
        .size = sizeof runtime,
        .data = o,
        .trace = trace,
        .roots = roots,
        .free = freed,
        .type_name = type_name,
        .event = heard,
        .wanted = ruby_wanted,
        .moved = ruby_moved,
        .update = ruby_update,
        .update_roots = ruby_update_roots,
    };
    double factor = 0, least = 0;

    number("RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR", &factor);
    number("RUBY_GC_MALLOC_LIMIT", &least);
    if (factor > 1) options.factor_percent = (uint32_t)(factor * 100);
    if (least > 0) options.least = (size_t)least;
    configure(&options);
    o->heap = hw_gc_create(&options, &runtime);
    if (o->heap == NULL) {
        fprintf(stderr, "heapwright: there is no memory for a collected heap\n");
        exit(1);
    }
    for (size_t size = NARROWEST; size <= WIDEST && o->pools < MOST_POOLS; size += 8) {
        size_t slot = hw_gc_slot_size(o->heap, size);
        if (o->pools == 0 || o->sizes[o->pools - 1] != slot) o->sizes[o->pools++] = slot;
    }
    for (size_t at = 0, pool = 0; at <= WIDEST / 8; at++) {
        while (pool + 1 < o->pools && o->sizes[pool] < at * 8) pool++;
        o->pool_of[at] = (uint8_t)pool;
    }
    o->full_mark_allowed = o->measures = true;
    o->stress = Qfalse;
    ruby_finalizers_init(o);
    if (!hw_gc_add_weak_pass(o->heap, ruby_weak_pass, o) || pthread_atfork(before_any_fork, NULL, NULL) != 0) rb_memerror();
}

void
rb_gc_impl_set_params(void *objspace)
{
    /* The environment was read when the heap was made. */
}

void *
rb_gc_impl_ractor_cache_alloc(void *objspace, void *ractor)
{
    struct objspace *o = objspace;
    struct cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL) rb_memerror();
    cache->mutator = o->first ? hw_gc_attach_away(o->heap) : hw_gc_attach(o->heap);
    if (cache->mutator == NULL) rb_memerror();
    if (o->first == NULL) {
        cache->entered = true;
        o->first = cache;
    }
    cache->next = o->caches;
    o->caches = cache;
    return cache;
}

static void
forget_cache(struct objspace *o, struct cache *cache)
{
    for (size_t pool = 0; pool < o->pools; pool++) {
        o->allocated_by_ended[pool] += cache->allocated[pool];
        cache->allocated[pool] = 0;
    }
}

void
rb_gc_impl_ractor_cache_free(void *objspace, void *cache_pointer)
{
    struct objspace *o = objspace;
    struct cache *cache = cache_pointer;

    for (struct cache **at = &o->caches; *at; at = &(*at)->next) {
        if (*at == cache) {
            *at = cache->next;
            break;
        }
    }
    forget_cache(o, cache);
    if (cache == o->first) {
        /* The process ends, and other threads still read this cache. */
        cache->next = o->caches;
        o->caches = cache;
        return;
    }
    if (cache->mutator != NULL) hw_gc_detach(enter(cache));
    free(cache);
}

void
rb_gc_impl_objspace_free(void *objspace)
{
    struct objspace *o = objspace;

    while (o->caches) {
        struct cache *cache = o->caches;
        o->caches = cache->next;
        hw_gc_detach(enter(cache));
        free(cache);
    }
    o->first = NULL;
    o->ended = true;
    hw_gc_destroy(o->heap);
    o->heap = NULL;
}

const char *
rb_gc_impl_active_gc_name(void)
{
    return "heapwright";
}

/* ---- forks ------------------------------------------------------------------ */

/* The heap handles forks by itself. It waits for mutators that are at work, so the mutators are
   away meanwhile, except that of the thread that forks. (Another thread may have made that
   mutator.) */

/* Ruby forks for `system` and its kin without a call of the collector, and so may extensions.
   The thread that forks has the GVL. This handler was registered after the heap's own handler,
   so it runs first. */
static void
before_any_fork(void)
{
    struct objspace *o = &the;

    if (o->heap == NULL || o->first == NULL || o->during_gc || rb_gc_multi_ractor_p()) return;
    if (!ruby_native_thread_p() || !ruby_thread_has_gvl_p()) return;
    hw_gc_leave(o->first->mutator);
    hw_gc_enter(o->first->mutator);
}

void
rb_gc_impl_before_fork(void *objspace)
{
    struct objspace *o = objspace;

    o->fork_lock = RB_GC_VM_LOCK();
    rb_gc_vm_barrier();
    hw_gc_mutator *mutator = ruby_mutator(o);
    others(o, mutator, hw_gc_leave);
    hw_gc_leave(mutator);
    hw_gc_enter(mutator);
}

void
rb_gc_impl_after_fork(void *objspace, rb_pid_t pid)
{
    struct objspace *o = objspace;
    hw_gc_mutator *mutator = ruby_mutator(o);

    if (pid == 0) {
        /* The other Ractors and their mutators are gone. Ruby gives their caches back when it
           frees these Ractors. */
        struct cache **at = &o->caches;
        while (*at) {
            struct cache *cache = *at;
            if (cache->mutator == mutator) {
                at = &cache->next;
                o->first = cache;
            }
            else {
                *at = cache->next;
                forget_cache(o, cache);
                cache->mutator = NULL;
            }
        }
        ruby_jobs_after_fork(o);
    }
    else {
        others(o, mutator, hw_gc_enter);
    }
    RB_GC_VM_UNLOCK(o->fork_lock);
}
