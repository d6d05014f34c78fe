//! The thread's own word, and its fast word: what the thread allocates from.
//!
//! ```text
//!   own word                  fast word        the thread allocates from
//!   0                         sentinel         nothing yet
//!   1                         sentinel         the heap of threads whose cache is gone
//!   cache                     its hot part     a cache of its own
//!   stub | SHARED             stub             a shared cache, which stands behind the stub
//!   stub | SHARED | BY_CPU    stub             the shared cache of its CPU
//!   gate | SHARED | GATE      gate             its CPU's arrays
//!   cache | HARDENED          its stub         its cache of the hardened heap
//! ```
//!
//! The fast word stays at the sentinel where each call is counted, traced, passed on or seen
//! by the debug heap, and in a thread that counts its calls (`tallies`); the own word says then what the thread has.
//!
//! Invariant: what a word leads to is never freed. Caches, stubs and gates are at multiples of 16,
//! so the marks have room.
//!
//! Called by the rest of `heap`; the fast paths read the fast word by themselves.

use core::ptr;

use super::{SENTINEL, foreign, tallies};
use crate::cache::magazines::{self, SharedCache};
use crate::cache::{Cache, Hot, OwnCache};
use crate::hardened;
use crate::hooks;
use crate::options;
use crate::os::tls;

const EXITED: usize = 1;
const SHARED: usize = 2;
const GATE: usize = 4;
const BY_CPU: usize = 8;
/// (No thread that has exited shares a cache.)
const HARDENED: usize = EXITED | SHARED;
const MARKS: usize = EXITED | SHARED | GATE | BY_CPU;
const _: () = assert!(align_of::<Cache>() > MARKS && align_of::<Hot>() > MARKS);

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

/// Reads the calling thread's word.
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
        HARDENED => {
            let cache = word.map_addr(|address| address & !MARKS).cast::<hardened::Cache>();
            // SAFETY: it leads to a cache of the hardened heap, which is never freed.
            Own::Hardened(unsafe { &*cache })
        }
        SHARED => {
            let stub = word.map_addr(|address| address & !MARKS).cast::<Hot>();
            // SAFETY: it leads to the stub of a shared cache, which is never freed.
            Own::Shared(magazines::of(unsafe { &*stub }))
        }
        _ => Own::ByCpu,
    }
}

/// The cache that is the calling thread's own, if it has one.
#[inline]
pub(super) fn cache() -> Option<OwnCache> {
    if let Own::Cache(cache) = get() { Some(cache) } else { None }
}

/// The calling thread's own cache, if the fast word leads to `hot` and that is its hot part: not
/// where calls are counted, traced or passed on.
#[inline(always)]
pub(super) fn cache_of(hot: &Hot) -> Option<OwnCache> {
    // The own word of a thread with such a cache is the hot part's place; any other word of those that
    // lead to a hot part is marked.
    const { assert!(core::mem::offset_of!(Cache, hot) == 0) };
    let word = tls::own();
    if word.addr() != ptr::from_ref(hot).addr() {
        return None;
    }
    // SAFETY: an unmarked word that is not null leads to a cache, which is never freed.
    let cache = unsafe { &*word.cast::<Cache>() };
    // SAFETY: the thread's word leads to its own cache until it gives it back.
    Some(unsafe { OwnCache::of(cache) })
}

/// Whether the calling thread goes by its CPU's arrays.
#[inline]
pub(super) fn goes_by_gate() -> bool {
    tls::own().addr() & GATE != 0
}

/// Gives the calling thread a cache of its own.
pub(super) fn set_cache(cache: OwnCache) {
    let cache = cache.get();
    set(ptr::from_ref(cache).cast_mut().cast(), 0, (&raw const cache.hot).cast_mut().cast());
}

/// Lets the calling thread share a cache.
pub(super) fn set_shared(shared: &'static SharedCache) {
    set_stub(shared, SHARED);
}

/// Lets the calling thread use the shared cache of its CPU, which is `shared` for now.
pub(super) fn set_by_cpu(shared: &'static SharedCache) {
    set_stub(shared, SHARED | BY_CPU);
}

/// Lets the calling thread use its CPU's arrays, by the gate.
pub(super) fn set_gate(gate: *mut u8) {
    set(gate, SHARED | GATE, gate);
}

/// The calling thread's cache of the hardened heap, if it has one.
#[inline]
pub(super) fn hardened() -> Option<&'static hardened::Cache> {
    if let Own::Hardened(cache) = get() { Some(cache) } else { None }
}

/// Gives the calling thread a cache of the hardened heap.
pub(super) fn set_hardened(cache: &'static hardened::Cache) {
    set(ptr::from_ref(cache).cast_mut().cast(), HARDENED, cache.stub());
}

/// The calling thread has given its cache back.
pub(super) fn set_exited() {
    tls::set_fast((&raw const SENTINEL).cast_mut().cast());
    tls::set_own(ptr::without_provenance_mut(EXITED));
}

fn set_stub(shared: &'static SharedCache, marks: usize) {
    let stub: *mut u8 = ptr::from_ref(shared.front()).cast_mut().cast();
    set(stub, marks, stub);
}

fn set(own: *mut u8, marks: usize, fast: *mut u8) {
    tls::set_own(own.map_addr(|address| address | marks));
    if !options::detailed()
        && !hooks::is_debugging()
        && foreign::peer().is_none()
        && !tallies::counts_here()
    {
        tls::set_fast(fast);
    }
}

/// Lets all calls of the calling thread come by the door, whatever it has.
#[cfg(feature = "debug")]
pub(super) fn stay_at_sentinel() {
    tls::set_fast((&raw const SENTINEL).cast_mut().cast());
}

/// Lets the calling thread, which counts no more, use what it has.
#[cfg(feature = "debug")]
pub(super) fn leave_sentinel() {
    let own = tls::own();
    let at = own.map_addr(|address| address & !MARKS);
    match own.addr() & MARKS {
        0 if own.is_null() => {}
        EXITED => {}
        HARDENED => {
            // SAFETY: it leads to a cache of the hardened heap, which is never freed.
            let cache = unsafe { &*at.cast::<hardened::Cache>() };
            set(at, HARDENED, cache.stub());
        }
        // A cache begins with its hot part; stubs and gates are what is used.
        marks => set(at, marks, at),
    }
}
