/*
** The memory that objects have outside of the heap: malloc's functions, and the sum of their
** memory.
**
**   malloc, realloc, free --> external (a sum, any thread) --> hw_gc_account --> collections come sooner
**
** Any thread may call these functions, with the GVL or without. Only a thread with the GVL may
** collect. Sizes are always malloc's sizes of blocks, because Ruby seldom passes a size when it
** frees. The heap gets the sum from time to time. Bytes that a sweep frees are reported in the
** sweep, so that they count as dead.
**
** The sum is too high if a block is freed by free, and not by Ruby's function: Ruby's own parser
** does so, and extensions do. So after each major collection the sum is compared with the bytes
** that malloc has in use, if malloc reports these.
*/
#include "heapwright.h"

#include <dlfcn.h>
#include <malloc.h>

ptrdiff_t
ruby_tell_external(struct objspace *o)
{
    ptrdiff_t bytes = atomic_exchange_explicit(&o->external, 0, memory_order_relaxed);

    if (bytes != 0 && o->heap != NULL) hw_gc_account(o->heap, bytes);
    return bytes;
}

/* The bytes that malloc has in use. SIZE_MAX: the malloc of this process does not report them. */
static size_t
in_use(void)
{
    static struct mallinfo2 (*ask)(void);
    static bool looked;

    if (!looked) {
        Dl_info its, asked;
        void *function = dlsym(RTLD_DEFAULT, "mallinfo2");
        /* glibc's figures do not cover another malloc that was preloaded. */
        if (function != NULL && dladdr(function, &asked) && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &its) &&
            its.dli_fbase == asked.dli_fbase) {
            memcpy(&ask, &function, sizeof ask);
        }
        looked = true;
    }
    if (ask == NULL) return SIZE_MAX;
    struct mallinfo2 info = ask();
    return info.uordblks + info.hblkhd;
}

void
ruby_compare_external(struct objspace *o)
{
    hw_gc_statistics s;
    size_t most = in_use();

    ruby_tell_external(o);
    hw_gc_stats(o->heap, &s, sizeof s);
    if (s.external_bytes > most) hw_gc_account(o->heap, -(ptrdiff_t)(s.external_bytes - most));
}

static inline void
add(struct objspace *o, ptrdiff_t bytes)
{
    ptrdiff_t was = atomic_fetch_add_explicit(&o->external, bytes, memory_order_relaxed);

    if (RB_UNLIKELY(was + bytes < -FEW_EXTERNAL)) ruby_tell_external(o);
}

/* Whether this thread may make a collection here. (A Ractor that ends has no cache any more.) */
static bool
may_collect_here(struct objspace *o)
{
    return o->heap != NULL && o->first != NULL && ruby_native_thread_p() && ruby_thread_has_gvl_p() && ruby_may_collect(o) &&
           !(rb_gc_multi_ractor_p() && rb_gc_get_ractor_newobj_cache() == NULL);
}

/* Called when malloc's memory has grown. May collect. */
static inline void
grown(struct objspace *o)
{
    if (RB_LIKELY(atomic_load_explicit(&o->external, memory_order_relaxed) < FEW_EXTERNAL && !RTEST(o->stress))) return;
    ptrdiff_t bytes = ruby_tell_external(o);
    if (may_collect_here(o)) ruby_pay_in_malloc(o, bytes > 0 ? (size_t)bytes : 0);
}

/* Collects because there is no memory. Returns false if it may not collect. */
static bool
collected(struct objspace *o)
{
    if (!may_collect_here(o)) return false;
    ruby_collect_in_malloc(o);
    return true;
}

void *
rb_gc_impl_malloc(void *objspace, size_t size IF_ALLOWED)
{
    struct objspace *o = objspace;

    if (ALLOWED) grown(o);
    void *block = malloc(size);
    if (RB_UNLIKELY(block == NULL) && ALLOWED && collected(o)) block = malloc(size);
    if (RB_LIKELY(block != NULL)) add(o, (ptrdiff_t)malloc_usable_size(block));
    return block;
}

void *
rb_gc_impl_calloc(void *objspace, size_t size IF_ALLOWED)
{
    struct objspace *o = objspace;

    if (ALLOWED) grown(o);
    void *block = calloc(1, size);
    if (RB_UNLIKELY(block == NULL) && ALLOWED && collected(o)) block = calloc(1, size);
    if (RB_LIKELY(block != NULL)) add(o, (ptrdiff_t)malloc_usable_size(block));
    return block;
}

void *
rb_gc_impl_realloc(void *objspace, void *block, size_t size, size_t old_size IF_ALLOWED)
{
    struct objspace *o = objspace;

    if (block == NULL) return rb_gc_impl_malloc(o, size PASS_ALLOWED);
    if (size == 0) {
        /* As Ruby's own collector: a block of its smallest size, which may be freed. */
        void *least = rb_gc_impl_malloc(o, 1 PASS_ALLOWED);
        if (least != NULL) rb_gc_impl_free(o, block, old_size);
        return least;
    }
    if (ALLOWED) grown(o);
    ptrdiff_t before = (ptrdiff_t)malloc_usable_size(block);
    void *moved = realloc(block, size);
    if (RB_UNLIKELY(moved == NULL) && ALLOWED && collected(o)) moved = realloc(block, size);
    if (RB_LIKELY(moved != NULL)) add(o, (ptrdiff_t)malloc_usable_size(moved) - before);
    return moved;
}

void
rb_gc_impl_free(void *objspace, void *block, size_t old_size)
{
    struct objspace *o = objspace;

    if (block == NULL) return;
    size_t size = malloc_usable_size(block);
    free(block);
    /* A sweep's frees are of dead objects: see freed. The thread that sweeps has the VM's lock. */
    if (ruby_is_freeing) o->freed_bytes += size;
    else add(o, -(ptrdiff_t)size);
}

void
rb_gc_impl_adjust_memory_usage(void *objspace, ssize_t bytes)
{
    struct objspace *o = objspace;

    add(o, bytes);
    if (bytes > 0) grown(o);
}
