/*
** GC.stat and its kin, GC.config, and what a program may ask about an object.
**
** A figure has Ruby's name if it means the same. Figures of Ruby's that have no counterpart here
** are 0, so that code that reads a hash finds its keys.
*/
#include "heapwright.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct figure {
    const char *name;
    size_t value;
};

/* The figure of a symbol, or all of them in a hash. Qundef: no figure has that name. */
static VALUE
answer(VALUE hash_or_symbol, const struct figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        VALUE name = ID2SYM(rb_intern(figures[i].name));
        if (hash_or_symbol == name) return SIZET2NUM(figures[i].value);
        if (!SYMBOL_P(hash_or_symbol)) rb_hash_aset(hash_or_symbol, name, SIZET2NUM(figures[i].value));
    }
    return SYMBOL_P(hash_or_symbol) ? Qundef : hash_or_symbol;
}

static hw_gc_statistics
statistics(struct objspace *o)
{
    hw_gc_statistics s;

    ruby_tell_external(o);
    hw_gc_stats(o->heap, &s, sizeof s);
    return s;
}

/* Objects that a pool has ever given. */
size_t
ruby_allocated(struct objspace *o, size_t pool)
{
    size_t sum = o->allocated_by_ended[pool];

    for (struct cache *cache = o->caches; cache; cache = cache->next) sum += cache->allocated[pool];
    return sum;
}

/* Slots in the heap's pages. */
size_t
ruby_slots(struct objspace *o)
{
    hw_gc_statistics s = statistics(o);
    size_t slots = 0;

    for (size_t i = 0; i < o->pools; i++) slots += s.pool[i].slots;
    return slots;
}

/* Objects of a pool: the objects that the last collection found live, and the objects allocated
 * since. */
static size_t
live_in(struct objspace *o, const hw_gc_statistics *s, size_t pool)
{
    size_t live = s->pool[pool].live + ruby_allocated(o, pool) - o->allocated_before[pool];

    return live < s->pool[pool].slots ? live : s->pool[pool].slots;
}

static uint64_t
all_ns(const hw_gc_statistics *s)
{
    return s->pause_ns + s->sweep_ns;
}

static uint64_t
measured_ns(struct objspace *o, const hw_gc_statistics *s)
{
    return (o->measures ? all_ns(s) : o->unmeasured_from) - o->unmeasured_ns;
}

VALUE
rb_gc_impl_stat(void *objspace, VALUE hash_or_symbol)
{
    struct objspace *o = objspace;
    hw_gc_statistics s = statistics(o);
    size_t pages = 0, slots = 0, live = 0, made = 0;
    uint64_t ns = measured_ns(o, &s), sweep = s.sweep_ns < ns ? s.sweep_ns : ns;

    for (size_t i = 0; i < o->pools; i++) {
        pages += s.pool[i].pages;
        slots += s.pool[i].slots;
        live += live_in(o, &s, i);
        made += ruby_allocated(o, i);
    }
    const struct figure figures[] = {
        { "count", s.cycles },
        { "time", ns / 1000000 },
        { "marking_time", (ns - sweep) / 1000000 },
        { "sweeping_time", sweep / 1000000 },
        { "heap_allocated_pages", pages },
        { "heap_empty_pages", s.empty_bytes / 65536 },
        { "heap_allocatable_slots", (s.goal_bytes > s.live_bytes ? s.goal_bytes - s.live_bytes : 0) / o->sizes[0] },
        { "heap_available_slots", slots },
        { "heap_live_slots", live },
        { "heap_free_slots", slots - live },
        { "heap_final_slots", 0 },
        { "heap_marked_slots", live },
        { "heap_eden_pages", pages },
        { "total_allocated_pages", pages },
        { "total_freed_pages", 0 },
        { "total_allocated_objects", made },
        { "total_freed_objects", made - live },
        { "malloc_increase_bytes", s.external_bytes },
        { "malloc_increase_bytes_limit", s.goal_bytes },
        { "minor_gc_count", s.minor_cycles },
        { "major_gc_count", s.cycles - s.minor_cycles },
        { "compact_count", s.compactions },
        { "read_barrier_faults", 0 },
        { "total_moved_objects", s.moved_objects },
        { "remembered_wb_unprotected_objects", 0 },
        { "remembered_wb_unprotected_objects_limit", 0 },
        { "old_objects", s.old_bytes / o->sizes[0] },
        { "old_objects_limit", s.goal_bytes / o->sizes[0] },
        { "oldmalloc_increase_bytes", s.external_bytes },
        { "oldmalloc_increase_bytes_limit", s.goal_bytes },
        { "weak_references_count", o->weak->num_entries },
        /* heapwright's own. */
        { "longest_pause_ns", s.pause_wall_max_ns },
        { "longest_pause_cpu_ns", s.pause_max_ns },
        { "live_bytes", s.live_bytes },
        { "peak_bytes", s.peak_bytes },
    };
    return answer(hash_or_symbol, figures, sizeof figures / sizeof *figures);
}

static VALUE
stat_of_pool(struct objspace *o, const hw_gc_statistics *s, size_t pool, VALUE hash_or_symbol)
{
    size_t made = ruby_allocated(o, pool), live = live_in(o, s, pool);
    const struct figure figures[] = {
        { "slot_size", s->pool[pool].slot_size },
        { "heap_eden_pages", s->pool[pool].pages },
        { "heap_eden_slots", s->pool[pool].slots },
        { "total_allocated_pages", s->pool[pool].pages },
        { "force_major_gc_count", 0 },
        { "force_incremental_marking_finish_count", 0 },
        { "total_allocated_objects", made },
        { "total_freed_objects", made - live },
        /* Since 4.0. */
        { "heap_live_slots", live },
        { "heap_free_slots", s->pool[pool].slots - live },
        { "heap_final_slots", 0 },
    };
    return answer(hash_or_symbol, figures, sizeof figures / sizeof *figures - (RUBY_IS_4 ? 0 : 3));
}

VALUE
rb_gc_impl_stat_heap(void *objspace, VALUE number, VALUE hash_or_symbol)
{
    struct objspace *o = objspace;
    hw_gc_statistics s = statistics(o);

    if (!NIL_P(number)) {
        long pool = NUM2LONG(number);
        if (pool < 0 || (size_t)pool >= o->pools) rb_raise(rb_eArgError, "heap index out of range");
        if (!SYMBOL_P(hash_or_symbol) && !RB_TYPE_P(hash_or_symbol, T_HASH)) {
            rb_raise(rb_eTypeError, "non-hash or symbol given");
        }
        return stat_of_pool(o, &s, (size_t)pool, hash_or_symbol);
    }
    if (!RB_TYPE_P(hash_or_symbol, T_HASH)) rb_raise(rb_eTypeError, "non-hash given");
    for (size_t pool = 0; pool < o->pools; pool++) {
        VALUE of_pool = rb_hash_aref(hash_or_symbol, SIZET2NUM(pool));
        if (!RB_TYPE_P(of_pool, T_HASH)) {
            of_pool = rb_hash_new();
            rb_hash_aset(hash_or_symbol, SIZET2NUM(pool), of_pool);
        }
        stat_of_pool(o, &s, pool, of_pool);
    }
    return hash_or_symbol;
}

size_t
rb_gc_impl_gc_count(void *objspace)
{
    return statistics(objspace).cycles;
}

/* Times are always measured. Only the times that Ruby wanted to measure are shown. */
void
rb_gc_impl_set_measure_total_time(void *objspace, VALUE flag)
{
    struct objspace *o = objspace;
    hw_gc_statistics s = statistics(o);

    if (RTEST(flag) == o->measures) return;
    if (o->measures) o->unmeasured_from = all_ns(&s);
    else o->unmeasured_ns += all_ns(&s) - o->unmeasured_from;
    o->measures = RTEST(flag);
}

bool
rb_gc_impl_get_measure_total_time(void *objspace)
{
    return ((struct objspace *)objspace)->measures;
}

unsigned long long
rb_gc_impl_get_total_time(void *objspace)
{
    hw_gc_statistics s = statistics(objspace);
    return measured_ns(objspace, &s);
}

static VALUE
symbol(const char *name)
{
    return name ? ID2SYM(rb_intern(name)) : Qnil;
}

VALUE
rb_gc_impl_latest_gc_info(void *objspace, VALUE hash_or_key)
{
    static const char *const reasons[] = { NULL, "newobj", "malloc", "method", "stress" };
    static const char *const states[] = { "none", "marking", "sweeping", "sweeping" };
    struct objspace *o = objspace;
    hw_gc_statistics s = statistics(o);
    bool major = s.cycles > 0 && !o->last_was_minor;
    const struct {
        const char *name;
        VALUE value;
    } facts[] = {
        { "major_by", major ? symbol(o->last_reason == BY_METHOD || o->last_reason == BY_STRESS ? "force" : "oldgen") : Qnil },
        { "need_major_by", hw_gc_major_owed(o->first->mutator) ? symbol("oldgen") : Qnil },
        { "gc_by", symbol(reasons[o->last_reason]) },
        { "have_finalizer", atomic_load(&o->jobs) ? Qtrue : Qfalse },
        { "immediate_sweep", o->last_reason == BY_STRESS || (o->last_reason == BY_METHOD && o->immediate_sweep) ? Qtrue : Qfalse },
        { "state", symbol(states[s.phase & 3]) },
        { "weak_references_count", SIZET2NUM(o->weak->num_entries) },
        { "retained_weak_references_count", SIZET2NUM(o->weak->num_entries) },
    };

    if (!SYMBOL_P(hash_or_key) && !RB_TYPE_P(hash_or_key, T_HASH)) rb_raise(rb_eTypeError, "non-hash or symbol given");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (hash_or_key == symbol(facts[i].name)) return facts[i].value;
        if (!SYMBOL_P(hash_or_key)) rb_hash_aset(hash_or_key, symbol(facts[i].name), facts[i].value);
    }
    return SYMBOL_P(hash_or_key) ? Qundef : hash_or_key;
}

/* ---- GC.config ----------------------------------------------------------------- */

VALUE
rb_gc_impl_config_get(void *objspace)
{
    VALUE hash = rb_hash_new();

    rb_hash_aset(hash, symbol("rgengc_allow_full_mark"), ((struct objspace *)objspace)->full_mark_allowed ? Qtrue : Qfalse);
    return hash;
}

void
rb_gc_impl_config_set(void *objspace, VALUE hash)
{
    struct objspace *o = objspace;

    if (!RB_TYPE_P(hash, T_HASH)) rb_raise(rb_eArgError, "expected keyword arguments");
    VALUE allowed = rb_hash_lookup2(hash, symbol("rgengc_allow_full_mark"), Qundef);
    if (allowed == Qundef || RTEST(allowed) == o->full_mark_allowed) return;
    o->full_mark_allowed = RTEST(allowed);
    if (o->full_mark_allowed) {
        hw_gc_resume_majors(ruby_mutator(o));
    }
    else {
        /* A major collection that is under way or was chosen before runs now, and none runs
           afterwards. */
        hw_gc_defer_majors(ruby_mutator(o));
        rb_gc_impl_start(o, false, true, true, false);
    }
}

/* ---- objects --------------------------------------------------------------------- */

struct age {
    VALUE object;
    bool is_old;
};

static void
ask_age(struct objspace *o, hw_gc_mutator *mutator, void *context)
{
    struct age *age = context;

    age->is_old = hw_gc_is_old(mutator, (void *)age->object);
}

/* The traits of an object, by their names in Ruby's own dumps. Returns their number. */
static size_t
traits(struct objspace *o, VALUE obj, ID names[4])
{
    struct age age = { obj, false };
    size_t count = 0;

    /* The heap may have to stop all mutators to know. */
    if (hw_gc_has_mark(o->first->mutator, (void *)obj)) ruby_stopped(o, BY_NOTHING, ask_age, &age);
    if (!(RBASIC(obj)->flags & NO_BARRIERS)) names[count++] = rb_intern("wb_protected");
    if (age.is_old) {
        names[count++] = rb_intern("old");
        names[count++] = rb_intern("uncollectible");
        names[count++] = rb_intern("marked");
    }
    return count;
}

#if RUBY_IS_4
struct rb_gc_object_metadata_entry *
rb_gc_impl_object_metadata(void *objspace, VALUE obj)
{
    static _Thread_local struct rb_gc_object_metadata_entry entries[7]; /* one more: its name is 0 */
    ID names[4];
    size_t count = traits(objspace, obj, names);

    for (size_t i = 0; i < count; i++) entries[i] = (struct rb_gc_object_metadata_entry){ names[i], Qtrue };
    if (rb_obj_id_p(obj)) entries[count++] = (struct rb_gc_object_metadata_entry){ rb_intern("object_id"), rb_obj_id(obj) };
    if (RB_FL_TEST_RAW(obj, RUBY_FL_SHAREABLE)) entries[count++] = (struct rb_gc_object_metadata_entry){ rb_intern("shareable"), Qtrue };
    entries[count] = (struct rb_gc_object_metadata_entry){ 0, 0 };
    return entries;
}
#else
size_t
rb_gc_impl_obj_flags(void *objspace, VALUE obj, ID *flags, size_t most)
{
    ID names[4];
    size_t count = traits(objspace, obj, names);

    if (count > most) count = most;
    memcpy(flags, names, count * sizeof *names);
    return count;
}
#endif

bool
rb_gc_impl_pointer_to_heap_p(void *objspace, const void *pointer)
{
    return pointer != NULL && hw_gc_find(((struct objspace *)objspace)->heap, pointer) == pointer;
}

/* Whether an object is dead, though it was not freed yet. Tables of the VM that do not keep
   their objects ask. (An object that has moved is not dead by its old address.) */
bool
rb_gc_impl_garbage_object_p(void *objspace, VALUE obj)
{
    if (rb_gc_impl_object_moved_p(objspace, obj)) return false;
    return hw_gc_find(((struct objspace *)objspace)->heap, (void *)obj) != (void *)obj || RBASIC(obj)->flags == 0;
}

/* Nothing to do: hooks are looked up when something happens. */
void
rb_gc_impl_set_event_hook(void *objspace, const rb_event_flag_t event)
{
}

/* ---- constants and methods ------------------------------------------------------------ */

static void
count_wrong(struct objspace *o, hw_gc_mutator *mutator, void *wrong)
{
    *(size_t *)wrong = hw_gc_verify(mutator);
}

void
ruby_verify(struct objspace *o)
{
    size_t wrong = 0;

    ruby_stopped(o, BY_METHOD, count_wrong, &wrong);
    if (wrong > 0) rb_bug("heapwright: %" PRIuSIZE " references lead to no object", wrong);
}

static VALUE
verify(VALUE self)
{
    ruby_verify(rb_gc_get_objspace());
    return Qnil;
}

struct dump {
    int descriptor, error;
};

static void
write_dump(struct objspace *o, hw_gc_mutator *mutator, void *context)
{
    struct dump *dump = context;

    dump->error = hw_gc_dump(mutator, dump->descriptor) ? 0 : errno;
}

/* GC.heapwright_dump(path): all objects by class, with their references, for `heapwright heap`. */
static VALUE
dump_heap(VALUE self, VALUE path)
{
    FilePathValue(path);
    struct dump dump = { open(RSTRING_PTR(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 0 };

    if (dump.descriptor < 0) rb_sys_fail_str(path);
    ruby_stopped(rb_gc_get_objspace(), BY_METHOD, write_dump, &dump);
    close(dump.descriptor);
    if (dump.error != 0) rb_syserr_fail_str(dump.error, path);
    return path;
}

void
rb_gc_impl_init(void)
{
    struct objspace *o = rb_gc_get_objspace();
    VALUE constants = rb_hash_new();
    const struct figure figures[] = {
        { "BASE_SLOT_SIZE", o->sizes[0] },
        { "RBASIC_SIZE", sizeof(struct RBasic) },
        { "RVALUE_OVERHEAD", 0 },
        { "RVARGC_MAX_ALLOCATE_SIZE", o->sizes[o->pools - 1] },
        { "HEAP_COUNT", o->pools },
        { "SIZE_POOL_COUNT", o->pools },
        { "HEAP_PAGE_SIZE", 65536 },
        { "HEAP_PAGE_OBJ_LIMIT", 65536 / o->sizes[0] },
        { "RVALUE_OLD_AGE", 2 },
    };

    answer(constants, figures, sizeof figures / sizeof *figures);
    OBJ_FREEZE(constants);
    rb_define_const(rb_mGC, "INTERNAL_CONSTANTS", constants);
    VALUE words = rb_ary_new();
    OBJ_FREEZE(words);
    rb_define_const(rb_mGC, "OPTS", words);

    rb_define_singleton_method(rb_mGC, "heapwright_dump", dump_heap, 1);
    ruby_profiler_init();
    rb_define_singleton_method(rb_mGC, "verify_internal_consistency", verify, 0);
    ruby_compaction_init();
}
