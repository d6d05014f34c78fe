/*
** The declarations that the port's files share, and the state of the one heap of a Ruby process.
**
**   Ruby                                        here
**   objspace                                    struct objspace: one collected heap
**   a Ractor's cache of free slots              struct cache: a mutator of that heap
**   the GVL, the VM's lock and its barrier      the means to stop threads: see collector.c
**   T_NONE, the flags 0                         memory that was handed out and is not an object yet
**   T_ZOMBIE                                    none: a slot is freed at once; a job does later work
**
**   collector.c    boot, Ractors, allocation, collections, marking, barriers, forks
**   compaction.c   GC.compact, and objects that move
**   finalizers.c   finalizers, postponed frees, weak slots
**   ids.c          object ids, for a Ruby that does not keep them itself
**   malloc.c       the memory that objects have outside of the heap
**   profiler.c     GC::Profiler
**   statistics.c   GC.stat and its kin, and what a program may ask about an object
**   walking.c      all objects, one by one; the end of a process
*/
#ifndef RUBY_HEAPWRIGHT_H
#define RUBY_HEAPWRIGHT_H

#include "ruby/ruby.h" /* first: it says what the C library's headers declare */
#include "interface.h"
#include "ruby/debug.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gc/gc.h"
#include "gc/gc_impl.h"

#include "heapwright_gc.h"

/* The narrowest slot: flags, class and three words. */
#define NARROWEST 40
/* The widest slot that Ruby is offered. Ruby embeds nothing wider, and calls malloc instead. */
#define WIDEST 640
/* Bytes of malloc's memory that need not be reported to the heap at once. */
#define FEW_EXTERNAL (64 << 10)
/* An upper bound of a layout's pools up to that width. */
#define MOST_POOLS 40

/* Why a collection was made, for GC.latest_gc_info. */
enum reason { BY_NOTHING, BY_NEWOBJ, BY_MALLOC, BY_METHOD, BY_STRESS };

/* A Ractor's way into the heap. */
struct cache {
    hw_gc_mutator *mutator;
    struct cache *next;
    size_t allocated[MOST_POOLS]; /* objects, by pool */
    bool entered;                 /* one of its threads has entered the mutator */
};

/* Work for a time without a collection: a finalizer of Ruby's, or a free that may not happen in
   a sweep. */
struct job {
    struct job *next;
    void (*dfree)(void *);
    void *data;
    VALUE id, blocks;
};

/* The last compaction, in objects of each type. Up and down: to a wider slot, to a narrower
   slot. */
struct compaction {
    size_t considered[RUBY_T_MASK + 1], moved[RUBY_T_MASK + 1], moved_up[RUBY_T_MASK + 1], moved_down[RUBY_T_MASK + 1];
};

struct objspace {
    hw_gc_heap *heap;
    struct cache *caches;
    struct cache *first; /* the main Ractor's; data that all mutators share is read there */

    bool collecting; /* from the beginning of a collection to the end of its sweep */
    bool disabled, during_gc, full_mark_allowed, measures, ending, ended, compare;
    hw_gc_mutator *compacting; /* its thread compacts: movable objects are reported as such */
    bool updates;    /* objects have moved, and references are being changed */
    bool auto_compact, compaction_due;
    struct compaction compaction;
    VALUE stress;
    unsigned int fork_lock;
    enum reason reason, last_reason;
    bool last_was_minor, immediate_sweep;

    size_t sizes[MOST_POOLS + 1];
    uint8_t pool_of[WIDEST / 8 + 1];
    size_t pools;

    _Atomic ptrdiff_t external; /* bytes of malloc that the heap was not told of */
    size_t freed_bytes; /* of malloc's, by the sweep, that the heap was not told of */
    size_t allocated_by_ended[MOST_POOLS];
    size_t allocated_before[MOST_POOLS]; /* when the last marking ended */
    uint64_t unmeasured_ns, unmeasured_from; /* the times that GC.measure_total_time = false hides */

    st_table *finalizers;
#if !RUBY_IS_4
    st_table *id_of, *object_of;
    unsigned long long next_id;
#endif
    struct job *_Atomic jobs;
    atomic_bool finalizing;
    pthread_t finalizing_thread;
    rb_postponed_job_handle_t run_jobs;

    st_table *weak; /* place outside of the heap -> its object, if this collection has found the place */
    st_table *weak_owners; /* objects that have such places */
    VALUE **weak_within; /* places in the objects that have them */
    size_t weaks_within, weak_room;
    pthread_mutex_t weak_lock; /* protects weak, weak_owners and weak_within */
    VALUE *unfreed; /* objects with an id or a finalizer whose deaths the sweep does not report */
    size_t unfreeds, unfreed_room;
};

/* The tracer that this thread reports to, and the object that it traces. The thread with the
   VM's lock and the heap's own threads may mark at the same time. */
extern _Thread_local hw_gc_tracer *ruby_tracer;
extern _Thread_local VALUE ruby_traced;
/* This thread frees the memory of a dead object. */
extern _Thread_local bool ruby_is_freeing;

/* A function of Ruby that no header declares. */
int ruby_thread_has_gvl_p(void);

/* compaction.c: the heap's callbacks. ruby_may_move: whether an object may move if Ruby can
   change the references to it. */
size_t ruby_wanted(const void *object, void *data);
void ruby_moved(void *object, const void *from, size_t size, void *data);
void ruby_update(void *object, void *data);
void ruby_update_roots(void *data);
bool ruby_may_move(VALUE obj);
/* Whether major collections move objects: GC.auto_compact is on, and major collections are
   allowed. */
static inline bool
ruby_compacts_by_itself(struct objspace *o)
{
    return o->auto_compact && o->full_mark_allowed;
}
/* A full collection that moves objects. */
void ruby_compact(struct objspace *o, enum reason reason);
void ruby_compaction_init(void);

/* finalizers.c */
void ruby_finalizers_init(struct objspace *o);
void ruby_finalizers_roots(struct objspace *o, hw_gc_tracer *tracer);
void ruby_weak_pass(hw_gc_tracer *tracer, void *context);
/* Called when a collection begins. */
void ruby_forget_weak_places(struct objspace *o);
/* Called when objects have moved. */
void ruby_finalizers_update(struct objspace *o);
void ruby_object_died(struct objspace *o, VALUE object);
/* Notes that an object gets an id or a finalizer (flag), so that its death is reported. Under
   the VM's lock. False: there is no memory. */
bool ruby_note(struct objspace *o, VALUE object, VALUE flag);
void ruby_run_jobs(void *context);
/* False: another call runs jobs already. */
bool ruby_begin_jobs(struct objspace *o);
void ruby_end_jobs(struct objspace *o);
void ruby_jobs_after_fork(struct objspace *o);
void ruby_run_all_finalizers(struct objspace *o);

/* ids.c, under the VM's lock. */
#if RUBY_IS_4
static inline void ruby_ids_init(struct objspace *o) {}
static inline void ruby_forget_id(struct objspace *o, VALUE object) {}
#else
void ruby_ids_init(struct objspace *o);
VALUE ruby_id_of(struct objspace *o, VALUE object);
void ruby_forget_id(struct objspace *o, VALUE object);
#endif

/* collector.c: stops the VM, calls `with`, which may collect, and lets the VM continue. */
void ruby_stopped(struct objspace *o, enum reason reason, void (*with)(struct objspace *, hw_gc_mutator *, void *),
                  void *context);
hw_gc_mutator *ruby_mutator(struct objspace *o);
/* Frees the memory of an object. Its slot holds no object afterwards. */
void ruby_free_object(struct objspace *o, VALUE obj);
bool ruby_may_collect(struct objspace *o);
/* Pays for `bytes` by which malloc's memory has grown: by a part of the owed collections, or by
   a whole collection under stress. The thread has the GVL, and may collect; the same holds for
   ruby_collect_in_malloc. */
void ruby_pay_in_malloc(struct objspace *o, size_t bytes);
/* Makes a whole collection. */
void ruby_collect_in_malloc(struct objspace *o);

/* collector.c: "T_STRING" and the like. */
const char *ruby_type_name(unsigned type);

/* statistics.c */
/* Verifies every reference, and ends the process if a reference leads to no object. */
void ruby_verify(struct objspace *o);
size_t ruby_allocated(struct objspace *o, size_t pool);
size_t ruby_slots(struct objspace *o);
/* profiler.c */
void ruby_profiler_init(void);
void ruby_profiler_heard(struct objspace *o, bool begins);

/* malloc.c: tells the heap the change of malloc's memory, and returns the growth. */
ptrdiff_t ruby_tell_external(struct objspace *o);
/* Corrects the sum of malloc's memory after a collection. */
void ruby_compare_external(struct objspace *o);

/* Appends to a vector in malloc's memory. False: there is no memory. */
static inline bool
ruby_push(void **vector, size_t *count, size_t *room, size_t size, const void *element)
{
    if (*count == *room) {
        size_t more = *room ? *room * 2 : 64;
        void *grown = realloc(*vector, more * size);
        if (grown == NULL) return false;
        *vector = grown;
        *room = more;
    }
    memcpy((char *)*vector + *count * size, element, size);
    (*count)++;
    return true;
}

#endif
