//! Beginnings and ends: of the heap, of a thread's cache, of a thread.
//!
//! ```text
//! process:  NEW --first call--> STARTING --substrate open--> READY --join in forks--> the first call returns
//!                                                        \-> FAILED (no memory)
//! thread:   own word  nothing --first slow call--> cache --thread ends--> exited      (`own_word`)
//! ```
//!
//! The first call may come before `main`, before constructors, before the C
//! library has set `environ`. So nothing here allocates through `malloc`. The fork
//! hooks are registered only after the heap is READY: if the C library allocates for
//! them, that is an ordinary allocation. Other threads wait until they are registered. The hook for threads that end must be there
//! before: another thread that sees READY gets a cache at once, and asks for it. (A
//! pthread key is a number in a table of the C library's; no memory is asked for.)
//!
//! A thread that still allocates after its cache was given back (destructors
//! that run later than ours) uses one shared, locked heap instead of a cache,
//! which nobody would give back a second time.

use core::ffi::c_void;
use core::ptr;

use crate::cache::{self, CACHES, Cache, OwnCache, Use};
use crate::fork::{self, Part};
use crate::hardened;
use crate::memory_limit;
use crate::options::{self, Options};
use crate::os::{self, Exit, rseq};
use crate::substrate::{self, Registration};
use crate::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::{self, Lock};

use super::foreign;
use super::fork::HANDLERS;
use super::own_word::{self, Own};
use super::{cxx_forms, sampling, shared};
use crate::{hooks, trace};

const NEW: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NEW);
static STARTING: Lock<()> = Lock::new(());
/// Threads wait here before they get a cache: with a block of their own they might fork.
static JOINING: Registration = Registration::new();
/// Threads that have a cache of their own.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static LATE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

/// What a thread allocates from.
#[derive(Clone, Copy)]
pub(super) enum Mine {
    /// Its cache.
    Cache(OwnCache),
    /// The heap of those whose cache is gone; take its lock.
    Late(&'static Cache),
    /// One of the caches that threads share: see `shared`.
    Shared,
    /// The hardened heap, with its cache there, if it has one.
    Hardened(Option<&'static hardened::Cache>),
    /// Nothing: there is no memory for a cache.
    Nothing,
}

/// The calling thread's cache, made or adopted at the first call.
#[inline]
pub(super) fn mine() -> Mine {
    match own_word::get() {
        Own::Cache(cache) => Mine::Cache(cache),
        Own::Shared(_) | Own::ByCpu => Mine::Shared,
        Own::Hardened(cache) => Mine::Hardened(Some(cache)),
        Own::Nothing => mine_slow(false),
        Own::Exited => mine_slow(true),
    }
}

/// Whether the heap has started.
pub(crate) fn has_started() -> bool {
    STATE.load(Ordering::Acquire) == READY
}

#[cold]
fn mine_slow(has_exited: bool) -> Mine {
    // A signal handler that has interrupted its own thread's start finds nothing.
    if STATE.load(Ordering::Acquire) != READY && (sync::is_interrupted() || !start()) {
        return Mine::Nothing;
    }
    JOINING.once(join);
    if hardened::is_on() {
        return Mine::Hardened(if has_exited { None } else { hardened_cache() });
    }
    if has_exited {
        return late().map_or(Mine::Nothing, Mine::Late);
    }
    if shared::is_for_all() {
        return Mine::Shared;
    }
    // Starting may have allocated, and so given this thread its cache already.
    if let Some(cache) = own_word::cache() {
        return Mine::Cache(cache);
    }
    // Counted first, for while one thread makes its cache many others may come by.
    let is_beyond = LIVE.fetch_add(1, Ordering::Relaxed) >= most_of_their_own();
    if (is_beyond || cache::is_much_handed_over()) && shared::join_beside() {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        return Mine::Shared;
    }
    let Some(cache) = CACHES.adopt_or_make() else {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        return late().map_or(Mine::Nothing, Mine::Late);
    };
    cache.is_abandoned.store(false, Ordering::Relaxed);
    {
        // The thread that had it may still be leaving.
        let _order = cache.lock.lock();
        cache.begin();
    }
    // SAFETY: its tenure was just taken for this thread, which has no other cache.
    let cache = unsafe { OwnCache::of(cache) };
    own_word::set_cache(cache);
    fence(Ordering::SeqCst);
    if sampling::is_on() && !cache.sampling.is_on() {
        // It began after this cache was looked at. (What else is asked of it waits for a miss.)
        let _order = cache.enter();
        cache.follow_sampling();
    }
    os::watch_this_thread(Exit::Cache, ptr::from_ref(cache.get()).cast_mut().cast());
    Mine::Cache(cache)
}

/// Gives the calling thread a cache of the hardened heap. `None`: there is no memory for one.
fn hardened_cache() -> Option<&'static hardened::Cache> {
    // Starting may have allocated, and so given this thread its cache already.
    if let Some(cache) = own_word::hardened() {
        return Some(cache);
    }
    if sync::is_interrupted() {
        return None;
    }
    let cache = hardened::Cache::adopt_or_make()?;
    own_word::set_hardened(cache);
    // The mark says which kind of cache ends: caches are at multiples of 64.
    let token = ptr::from_ref(cache).cast_mut().cast::<u8>().wrapping_add(1);
    os::watch_this_thread(Exit::Cache, token.cast());
    Some(cache)
}

/// The calling thread gives its cache up, and goes by its CPU's arrays, if it can.
#[cold]
#[inline(never)]
pub(super) fn give_up(cache: OwnCache) {
    // A fork holds it, and the locks that it would take.
    if sync::holds_all() {
        return;
    }
    let order = cache.enter();
    let Some(gate) = shared::gate_beside() else {
        cache.stays_in_use();
        return;
    };
    cache.hand_slabs_over();
    drop(order);
    own_word::set_gate(gate.stub());
    LIVE.fetch_sub(1, Ordering::Relaxed);
    let token = if rseq::is_ours() { NO_CACHE } else { ptr::null_mut() };
    os::watch_this_thread(Exit::Cache, token);
    cache.abandon();
}

/// What [`thread_exit`] is given for a thread without a cache, which is in its CPU's arrays by an area of ours. (Caches
/// are elsewhere.)
const NO_CACHE: *mut c_void = ptr::without_provenance_mut(2);

/// Has the kernel keep the calling thread's CPU for the sequences, where the C library has not, until the thread
/// ends. False: it does not. Not in a child of `vfork`, which would leave its area's words to its parent, nor in a
/// sandbox, which may not know the call.
#[cold]
#[inline(never)]
pub(super) fn enter_sequences() -> bool {
    rseq::enter(|| {
        !memory_limit::is_in_sandbox()
            && substrate::is_original_process()
            && (!os::watched(Exit::Cache).is_null() || os::watch_this_thread(Exit::Cache, NO_CACHE))
    })
}

/// The calling thread ends. (In a sandbox the call may be the process's end. The area stays then; the kernel minds
/// that only in a detached thread of musl, within the instructions between its stack's end and its own.)
fn leave_sequences() {
    if !memory_limit::is_in_sandbox() {
        rseq::leave();
    }
}

/// The calling thread does what its cache's is asked for.
#[cold]
#[inline(never)]
pub(super) fn do_as_asked(cache: OwnCache) {
    if cache.should_be_given_up() {
        return give_up(cache);
    }
    let _order = cache.enter();
    cache.follow_sampling();
}

/// How many threads have a cache of their own where `cache=auto`: twice as many as can run at a time, and the one
/// that started them.
fn most_of_their_own() -> usize {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    match MOST.load(Ordering::Relaxed) {
        0 => {
            let most = 2 * os::cpus() + 1;
            MOST.store(most, Ordering::Relaxed);
            most
        }
        most => most,
    }
}

/// In a forked child: the other threads are gone.
pub(super) fn forget_after_fork(has_own: bool) {
    LIVE.store(has_own.into(), Ordering::Relaxed);
}

/// Publishes for statistics how much the calling thread's cache holds just now, and those that threads share.
pub(crate) fn publish() {
    publish_own();
    shared::publish();
}

/// The same for the calling thread's cache alone: it waits for nobody.
pub(crate) fn publish_own() {
    if let Some(cache) = own_word::cache() {
        cache.publish();
    }
}

/// See `heap::forward_sized_frees`.
///
/// # Safety
///
/// No other thread uses the heap meanwhile.
pub(super) unsafe fn forward_sized_frees() {
    // SAFETY: by the contract there is no other thread, and this is the calling one's cache.
    unsafe { cache::forward_sized_frees(own_word::cache().as_deref()) };
}

/// The heap of threads that have no cache: those whose cache is gone, those for which
/// there is no memory for one, those that cannot wait for a shared one.
#[cold]
pub(super) fn late() -> Option<&'static Cache> {
    // SAFETY: null, or a cache, which is never freed.
    if let Some(cache) = unsafe { LATE.load(Ordering::Acquire).as_ref() } {
        return Some(cache);
    }
    let cache = CACHES.make_new(Cache::become_heap)?;
    let made = ptr::from_ref(cache).cast_mut();
    // Two threads may come here at once; the one that is late leaves an empty
    // cache behind, once in a process's life.
    match LATE.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(cache),
        // SAFETY: a cache, which is never freed.
        Err(first) => Some(unsafe { &*first }),
    }
}

/// Whether a cache is that heap.
pub(super) fn is_late(cache: &Cache) -> bool {
    ptr::eq(LATE.load(Ordering::Relaxed), cache)
}

/// Opens the substrate as the options say, once. False: there is no memory.
#[cold]
#[inline(never)]
fn start() -> bool {
    let _starting = STARTING.lock();
    match STATE.load(Ordering::Acquire) {
        READY => return true,
        FAILED => return false,
        _ => {}
    }
    // Where everything is passed on, this copy only serves first-class heaps, and
    // the other one has read the options.
    let peered = foreign::find_peer();
    if !substrate::open(|| if peered { &Options::DEFAULT } else { options::get() }) {
        STATE.store(FAILED, Ordering::Release);
        return false;
    }
    #[cfg(feature = "debug")]
    if !peered {
        hooks::start();
        super::guards::start(options::get());
    }
    sync::prepare_owner_locks();
    if !peered && !hooks::is_debugging() {
        hardened::start(options::get(), super::guards::draw_for_hardened);
    }
    if !peered && (hooks::is_debugging() || hardened::is_on()) {
        cxx_forms::tell_apart();
    }
    if !peered && !hooks::is_debugging() && !hardened::is_on() {
        // Where there is no memory for shared caches there is hardly any for others.
        shared::start();
    }
    if !peered {
        #[cfg(not(feature = "interpose"))]
        options::report_not_honoured();
        trace::start();
    }
    os::on_thread_exit(Exit::Cache, thread_exit);
    STATE.store(READY, Ordering::Release);
    true
}

/// Joins in forks, and begins what may need the C library's memory. The heap has started, and the caller holds no lock.
fn join() {
    substrate::begun();
    fork::join(Part::Heap, &HANDLERS);
    trace::begun();
    #[cfg(feature = "debug")]
    {
        crate::debug::begun();
        // A profile may be begun later where other locks are held (`status`).
        crate::samples::join();
        if foreign::peer().is_none() && !hooks::is_debugging() && !hardened::is_on() {
            sampling::begun(options::get());
        }
    }
}

/// Runs when a thread that has a cache ends, or one whose area of restartable sequences is ours.
unsafe extern "C" fn thread_exit(token: *mut c_void) {
    if token == NO_CACHE {
        shared::leave_gate();
        return leave_sequences();
    }
    own_word::set_exited();
    leave_sequences();
    if token.addr() & 1 != 0 {
        let cache = token.cast::<u8>().wrapping_sub(1).cast::<hardened::Cache>();
        // SAFETY: with the mark it is the cache of the hardened heap that the thread was given.
        return unsafe { &*cache }.leave();
    }
    // SAFETY: the token is the cache that the thread was given.
    let cache = unsafe { &*token.cast::<Cache>() };
    LIVE.fetch_sub(1, Ordering::Relaxed);
    debug_assert!(cache.owned_by() == Use::Thread);
    cache.abandon();
}

/// Holds the locks across a fork.
pub(super) fn before_fork() {
    STARTING.acquire();
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread (or the one it is a copy of) holds it.
    unsafe { STARTING.release() };
}
