//! A thread's two words: what its calls come to first, and what it allocates from.
//!
//! ```text
//!   own word                  the thread allocates from                              fast word
//!   0                         nothing yet                                            sentinel
//!   cache                     a cache of its own                                     its hot part
//!   stub | SHARED             a shared cache, which stands behind the stub           the stub
//!   stub | SHARED | BY_CPU    the shared cache of its CPU                            the stub
//!   gate | SHARED | GATE      its CPU's arrays                                       the gate
//!   cache | HARDENED          its cache of the hardened heap                         its stub
//!   front | EXITED            the heap of threads whose cache is gone                the front
//! ```
//!
//! Each leads to a hot part, and so to a table of functions ([`Serve`](crate::cache::Serve)). Where
//! calls are observed, debugged or passed on, the fast word leads to a *front* instead: a hot part
//! without lists, whose table sees each call, and may pass it on to [`has`].
//!
//! Invariants: what a word leads to is never freed, and lies at a multiple of 16, so that the marks
//! have room. The fast word is a front's, or leads where the own word does.
//!
//! Called by the rest of `heap`.

use core::ptr;

use super::SENTINEL;
use crate::cache::magazines::{self, SharedCache};
use crate::cache::{Cache, Hot, OwnCache};
use crate::hardened;
use crate::os::tls;

const EXITED: usize = 1;
const SHARED: usize = 2;
const GATE: usize = 4;
const BY_CPU: usize = 8;
/// (No thread that has exited shares a cache.)
const HARDENED: usize = EXITED | SHARED;
const MARKS: usize = EXITED | SHARED | GATE | BY_CPU;
const _: () = assert!(align_of::<Cache>() > MARKS && align_of::<Hot>() > MARKS);
// A cache begins with its hot part.
const _: () = assert!(core::mem::offset_of!(Cache, hot) == 0);

/// What the calling thread's fast word leads to.
#[inline(always)]
pub(super) fn hot() -> &'static Hot {
    // SAFETY: the fast word leads to the sentinel or another front, to the hot part of this
    // thread's cache, to the stub of a shared cache or of a hardened one, or to the gate's; none is
    // ever freed.
    unsafe { &*tls::fast((&raw const SENTINEL).cast()).cast::<Hot>() }
}

/// What the own word leads to, without its marks; null: the thread has nothing.
#[inline]
fn target() -> *mut Hot {
    tls::own().map_addr(|address| address & !MARKS).cast()
}

/// What the calling thread allocates from, whatever its fast word leads to: the sentinel, if it has
/// nothing yet.
#[inline]
pub(super) fn has() -> &'static Hot {
    // SAFETY: null, or a hot part, which is never freed.
    unsafe { target().as_ref() }.unwrap_or(SENTINEL.get())
}

/// Whether the fast word leads to what the thread has, so that nothing sees its calls.
pub(super) fn is_direct() -> bool {
    ptr::eq(hot(), has())
}

/// What an own word says.
pub(super) enum Own {
    /// The thread has made no call yet that needed a cache.
    Nothing,
    /// Its cache was given back when it ended, and it allocates still.
    Exited,
    /// A cache of its own.
    Cache(OwnCache),
    /// A cache that it shares with other threads.
    Shared(&'static SharedCache),
    /// Whatever serves its CPU.
    ByCpu,
    /// A cache of the hardened heap.
    Hardened(&'static hardened::Cache),
}

/// Reads the calling thread's own word.
#[inline]
pub(super) fn get() -> Own {
    let word = tls::own();
    match word.addr() & MARKS {
        // SAFETY: null, or a cache, which is never freed.
        0 => match unsafe { word.cast::<Cache>().as_ref() } {
            // SAFETY: the thread's word leads to its own cache until it gives it back.
            Some(cache) => Own::Cache(unsafe { OwnCache::of(cache) }),
            None => Own::Nothing,
        },
        EXITED => Own::Exited,
        // SAFETY: it leads to a cache of the hardened heap, which is never freed.
        HARDENED => Own::Hardened(unsafe { &*target().cast::<hardened::Cache>() }),
        // SAFETY: it leads to the stub of a shared cache, which is never freed.
        SHARED => Own::Shared(magazines::of(unsafe { &*target() })),
        _ => Own::ByCpu,
    }
}

/// The cache that is the calling thread's own, if it has one.
#[inline]
pub(super) fn cache() -> Option<OwnCache> {
    if let Own::Cache(cache) = get() { Some(cache) } else { None }
}

/// The calling thread's cache of the hardened heap, if it has one.
#[inline]
pub(super) fn hardened() -> Option<&'static hardened::Cache> {
    if let Own::Hardened(cache) = get() { Some(cache) } else { None }
}

/// Whether the calling thread shares caches.
#[inline]
pub(super) fn shares() -> bool {
    matches!(get(), Own::Shared(_) | Own::ByCpu)
}

/// Whether the calling thread goes by its CPU's arrays.
#[inline]
pub(super) fn goes_by_gate() -> bool {
    tls::own().addr() & GATE != 0
}

/// Gives the calling thread a cache of its own.
pub(super) fn set_cache(cache: OwnCache) {
    set(ptr::from_ref(cache.get()).cast_mut().cast(), 0);
}

/// Lets the calling thread share a cache.
pub(super) fn set_shared(shared: &'static SharedCache) {
    set(ptr::from_ref(shared.front()).cast_mut().cast(), SHARED);
}

/// Lets the calling thread use the shared cache of its CPU, which is `shared` for now.
pub(super) fn set_by_cpu(shared: &'static SharedCache) {
    set(ptr::from_ref(shared.front()).cast_mut().cast(), SHARED | BY_CPU);
}

/// Lets the calling thread use its CPU's arrays, by the gate.
pub(super) fn set_gate(gate: *mut u8) {
    set(gate, SHARED | GATE);
}

/// Gives the calling thread a cache of the hardened heap.
pub(super) fn set_hardened(cache: &'static hardened::Cache) {
    set(ptr::from_ref(cache).cast_mut().cast(), HARDENED);
}

/// The calling thread has given its cache back, and allocates by `front` if it still does.
pub(super) fn set_exited(front: &'static Hot) {
    set(ptr::from_ref(front).cast_mut().cast(), EXITED);
}

/// The fast word goes along, unless it leads to a front.
#[inline(never)]
fn set(own: *mut u8, marks: usize) {
    let goes_along = is_direct();
    tls::set_own(own.map_addr(|address| address | marks));
    if goes_along {
        tls::set_fast(own);
    }
}

/// Lets all calls of the calling thread come to `front`, whatever it has.
pub(super) fn see_calls(front: &'static Hot) {
    tls::set_fast(ptr::from_ref(front).cast_mut().cast());
}
