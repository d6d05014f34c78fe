//! The fast heap, the default for `malloc`, and how other modes take its calls.
//!
//! ```text
//!   start, control                      starts, ends, tables, forks; the heap as a whole
//!        |
//!   modes                               drawn blocks, counts, trace, tallies;
//!        |                              hardened heap, debug heap, calls passed on, late threads
//!   resize ----> fast                   realloc; malloc and free -> lists, else a table's function
//!        |        |
//!        +------> own                   a thread's own cache
//!                  |
//!        shared, cpu, foreign           shared caches; blocks by entry (these name each other)
//!                  |
//!                words                  a thread's two words, in this file
//! ```
//!
//! Large blocks are in `cache::large`, samples and guarded blocks in `drawn`. Arrows point down,
//! except among the three files that name each other, and between `start` and `control`.
//!
//! A thread's fast word leads to a hot part, and the hot part to a table of functions (`Serve`) for
//! all calls that its lists do not serve. At first the word leads to the *sentinel*, whose table
//! decides once what the thread allocates from. So the fast paths do not check the process's mode.
//! Each call passes its own kind (malloc, new, a sized delete): see `request`. The *block's* entry
//! decides what `free` does, because any heap may have made the block.
//!
//! The functions here are raw: they take and return addresses and never panic. A misused pointer
//! ends the process with one line, unless the mode only reports misuse.
//!
//! ```
//! use heapwright::heap;
//!
//! let block = heap::malloc(100);
//! assert!(!block.is_null());
//! // SAFETY: the block is ours, and has room for 100 bytes.
//! unsafe { block.write_bytes(7, 100) };
//! // SAFETY: the block is ours.
//! let block = unsafe { heap::realloc(block, 1000) };
//! // SAFETY: the block is ours, and freed once.
//! unsafe { heap::free(block) };
//! ```

mod control;
mod cpu;
mod fast;
mod foreign;
mod modes;
mod own;
mod resize;
mod shared;
mod start;

pub use crate::extent::{
    Access, UNBOUNDED, checks_bounds, checks_limits, has_debugged_room, has_room, is_outside,
    out_of_bounds, room,
};
#[cfg(any(test, feature = "observe"))]
#[doc(hidden)]
pub use crate::hooks::observe;
pub use crate::hooks::{
    block_history, debug_at_exit, debug_has_stack, debug_is_interrupted, debug_looks_at_end,
    debug_prepare, debugging, fault, forget_code, guarding, is_guarded, keep, keep_new,
    lift_guards, poison, poisoned_bytes, put_guard_back, put_guards_back, remember_code,
};
pub use crate::request::{ALIGNED, MALLOC, NEW, NEW_ARRAY, Origin, POSIX_MEMALIGN, RUST};
#[cfg(feature = "debug")]
pub use crate::tallies::{Allocations, CannotCount, count_sites};
pub use crate::trace::{trace_at_exit, traces};
pub use crate::verdict::Verdict;
pub use crate::walk::{Block, walk};
pub use control::{Heap, free_uncached, malloc_uncached, realloc_to_nothing, should_move};
pub use control::{comes_into_a_group, hardened_at_exit, hardens, keeps_tokens_apart};
pub use control::{give_up_reserve, good_size, limit_address_space, owns, take_over, trim};
#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
#[doc(hidden)]
pub use fast::assembly;
pub use fast::{
    calloc, calloc_aligned, calloc_aligned_for, free, free_aligned_from, free_from, free_sized,
    free_sized_aligned_from, free_sized_fast, free_sized_from, malloc, malloc_aligned,
    malloc_aligned_fast, malloc_aligned_for, malloc_fast, malloc_medium_fast,
};
pub use foreign::usable_size;
pub use modes::allocate_of_token;
pub use resize::{realloc, realloc_sized_from};
pub use shared::raise_shared_caches;
pub use start::forward_sized_frees;
#[cfg(feature = "debug")]
pub use start::{count_begin, count_end};

pub(crate) use crate::cache::counters::totals;
pub(crate) use control::live as heaps_live;
pub(crate) use foreign::passed_on;
#[cfg(all(test, not(miri)))]
pub(crate) use start::SHARING;
#[cfg(feature = "debug")]
pub(crate) use start::begin_sampling;
pub(crate) use start::{has_started, publish, publish_own};

use crate::os;
use modes::Front;

// `used` keeps this file, with the thread words, in the program. The library with the locks needs
// the words, but a linker that reads each library once would look for them too late.
#[used]
static SENTINEL: Front = Front::new(&start::FIRST);

// Every thread's fast word leads to the sentinel until the thread's first call.
os::tls::define_words!(SENTINEL);

mod words {
    //! A thread's two words: where its calls go first, and what it allocates from.
    //!
    //! ```text
    //!   thread word               the thread allocates from                              fast word
    //!   0                         nothing yet                                            sentinel
    //!   cache                     a cache of its own                                     hot part
    //!   stub | SHARED             a shared cache, whose slot begins with the stub        the stub
    //!   stub | SHARED | BY_CPU    the shared cache of its CPU                            the stub
    //!   entry | SHARED | BY_ENTRY its CPU's arrays, through the per-CPU entry            the entry
    //!   cache | HARDENED          its cache of the hardened heap                         its stub
    //!   front | EXITED            the heap of threads whose cache is gone                the front
    //! ```
    //!
    //! If calls are observed, debugged or passed on, the fast word leads to a *front* instead: a
    //! hot part without lists. The front's table gets each call, and may pass it on to [`has`].
    //!
    //! Invariants: a word's target is never freed, and lies at a multiple of 16, which leaves room
    //! for the marks. The fast word leads to a front, or to the same target as the thread word.
    //!
    //! Called by the other files of `heap`.

    use core::ptr;

    use super::SENTINEL;
    use crate::cache::magazines::{self, SharedCache};
    use crate::cache::{Cache, Hot, OwnCache};
    use crate::hardened;
    use crate::os::tls;

    const EXITED: usize = 1;
    const SHARED: usize = 2;
    const BY_ENTRY: usize = 4;
    const BY_CPU: usize = 8;
    /// Both marks mean this, because no thread that has exited shares a cache.
    const HARDENED: usize = EXITED | SHARED;
    const MARKS: usize = EXITED | SHARED | BY_ENTRY | BY_CPU;
    const _: () = assert!(align_of::<Cache>() > MARKS && align_of::<Hot>() > MARKS);
    // A cache begins with its hot part.
    const _: () = assert!(core::mem::offset_of!(Cache, hot) == 0);

    #[inline(always)]
    pub(in crate::heap) fn hot() -> &'static Hot {
        // SAFETY: the fast word leads to a front, to the thread's hot part or stub, or to the
        // per-CPU entry. None is ever freed.
        unsafe { &*tls::fast((&raw const SENTINEL).cast()).cast::<Hot>() }
    }

    /// Returns null if the thread allocates from nothing yet.
    #[inline]
    fn target() -> *mut Hot {
        tls::own().map_addr(|address| address & !MARKS).cast()
    }

    /// The hot part that the thread word leads to, even if the fast word leads to a front. Returns
    /// the sentinel if the thread has nothing yet.
    #[inline]
    pub(in crate::heap) fn has() -> &'static Hot {
        // SAFETY: null, or a hot part, which is never freed.
        unsafe { target().as_ref() }.unwrap_or(SENTINEL.get())
    }

    /// Whether the calls go to the thread word's target, not to a front.
    pub(in crate::heap) fn is_direct() -> bool {
        ptr::eq(hot(), has())
    }

    pub(in crate::heap) enum Own {
        /// No call has needed a cache yet.
        Nothing,
        /// The thread's cache was given back at the thread's end, but the thread still allocates.
        Exited,
        Cache(OwnCache),
        Shared(&'static SharedCache),
        /// The shared cache, or the arrays, of the thread's CPU.
        ByCpu,
        Hardened(&'static hardened::Cache),
    }

    #[inline]
    pub(in crate::heap) fn get() -> Own {
        let word = tls::own();
        match word.addr() & MARKS {
            // SAFETY: null, or a cache, which is never freed.
            0 => match unsafe { word.cast::<Cache>().as_ref() } {
                // SAFETY: the thread word leads to the thread's own cache until it is given back.
                Some(cache) => Own::Cache(unsafe { OwnCache::of(cache) }),
                None => Own::Nothing,
            },
            EXITED => Own::Exited,
            // SAFETY: the word leads to a cache of the hardened heap, which is never freed.
            HARDENED => Own::Hardened(unsafe { &*target().cast::<hardened::Cache>() }),
            // SAFETY: the word leads to the stub of a shared cache, which is never freed.
            SHARED => Own::Shared(magazines::of(unsafe { &*target() })),
            _ => Own::ByCpu,
        }
    }

    #[inline]
    pub(in crate::heap) fn cache() -> Option<OwnCache> {
        if let Own::Cache(cache) = get() { Some(cache) } else { None }
    }

    #[inline]
    pub(in crate::heap) fn hardened() -> Option<&'static hardened::Cache> {
        if let Own::Hardened(cache) = get() { Some(cache) } else { None }
    }

    #[inline]
    pub(in crate::heap) fn shares() -> bool {
        matches!(get(), Own::Shared(_) | Own::ByCpu)
    }

    #[inline]
    pub(in crate::heap) fn uses_cpu_entry() -> bool {
        tls::own().addr() & BY_ENTRY != 0
    }

    pub(in crate::heap) fn set_cache(cache: OwnCache) {
        set(ptr::from_ref(cache.get()).cast_mut().cast(), 0);
    }

    pub(in crate::heap) fn set_shared(shared: &'static SharedCache) {
        set(ptr::from_ref(shared.front()).cast_mut().cast(), SHARED);
    }

    /// `shared` is the cache of the CPU that the thread runs on now.
    pub(in crate::heap) fn set_by_cpu(shared: &'static SharedCache) {
        set(ptr::from_ref(shared.front()).cast_mut().cast(), SHARED | BY_CPU);
    }

    pub(in crate::heap) fn set_cpu_entry(cpu_entry: *mut u8) {
        set(cpu_entry, SHARED | BY_ENTRY);
    }

    pub(in crate::heap) fn set_hardened(cache: &'static hardened::Cache) {
        set(ptr::from_ref(cache).cast_mut().cast(), HARDENED);
    }

    /// `front` serves the calls of the thread after its cache was given back.
    pub(in crate::heap) fn set_exited(front: &'static Hot) {
        set(ptr::from_ref(front).cast_mut().cast(), EXITED);
    }

    /// Sets the thread word, and the fast word unless it leads to a front.
    #[inline(never)]
    fn set(own: *mut u8, marks: usize) {
        let goes_along = is_direct();
        tls::set_own(own.map_addr(|address| address | marks));
        if goes_along {
            tls::set_fast(own);
        }
    }

    /// Makes `front` get all calls of the thread. The thread word stays.
    pub(in crate::heap) fn see_calls(front: &'static Hot) {
        tls::set_fast(ptr::from_ref(front).cast_mut().cast());
    }
}

#[cfg(test)]
#[path = "../tests/heap.rs"]
mod tests;
