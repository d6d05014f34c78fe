//! The start of the heap, the start and end of each thread, the tables of functions, and forks.
//!
//! ```text
//! process:  NEW --first call--> STARTING --substrate open--> READY --join in forks--> call returns
//!                                                        \-> FAILED (no memory)
//! thread:   sentinel --first call--> the process's mode decides, once:
//!             a front     passed on, observed, debugged: a cache only when the front needs one
//!             own cache   `own`; with sampled or guarded blocks `modes` first
//!             shared      `shared`, `cpu`
//!             hardened    `modes`
//!           --thread ends--> late (`modes`)
//! ```
//!
//! The first call may come before `main`, before constructors, and before the C library has set
//! `environ`. So nothing here allocates through `malloc`. The fork hooks are registered after
//! READY, because the C library may allocate for them. Other threads wait for this. The hook for
//! threads that end is registered before READY, because a thread that sees READY gets a cache at
//! once. (A pthread key takes no memory.)
//!
//! A thread may allocate after its cache was given back, in later destructors. Then one shared,
//! locked heap serves the thread, because no hook would give back a second cache.

use core::ffi::c_void;
use core::ptr;

use super::modes::{self, Front, answer, front};
use super::words::{self, Own};
use super::{SENTINEL, control, cpu, foreign, own, resize, shared};
use crate::address_map::{Entry, Kind, MAP};
use crate::cache::{
    self, CACHES, Cache, Hot, Mismatch, OwnCache, Serve, Use, arrays, large, magazines,
};
use crate::chunk;
use crate::drawn;
use crate::fork::{self, Part};
use crate::hardened;
use crate::options::{self, Options};
use crate::os::{self, Exit};
use crate::request::{Origin, Return, Said};
use crate::slab::Slab;
use crate::substrate::{self, Registration};
use crate::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::{self, Lock};
#[cfg(feature = "debug")]
use crate::tallies::{self, Allocations, CannotCount};
use crate::{hooks, trace};

// The tables. -------------------------------------------------------------------------------------

/// The table of a thread's first call. Its functions decide once what the thread gets.
pub(super) static FIRST: Serve = front(allocate_first, give_back_first, resize_first, &FIRST);

/// A table with its variant that draws samples and guarded blocks.
macro_rules! table {
    ($($field:ident: $value:expr),* $(,)?; $drawn:ident) => {
        Serve {
            $($field: $value,)*
            resize: resize::resize,
            #[cfg(feature = "debug")]
            drawn: &drawn_from::$drawn,
            #[cfg(not(feature = "debug"))]
            drawn: &$drawn,
            plain: &$drawn,
        }
    };
}

static OWN: Serve = table! {
    malloc: own::malloc,
    free: own::free,
    unknown: own::free_unknown,
    large: own::allocate_large,
    allocate: own::allocate,
    give_back: own::give_back;
    OWN
};

static SHARED: Serve = table! {
    malloc: shared::malloc,
    free: shared::free_other,
    unknown: shared::free_unknown,
    large: shared::allocate_large,
    allocate: shared::allocate,
    give_back: shared::give_back;
    SHARED
};

static BY_CPU: Serve = table! {
    malloc: shared::malloc_by_cpu,
    free: shared::free_other,
    unknown: shared::free_unknown,
    large: shared::allocate_large,
    allocate: shared::allocate_by_cpu,
    give_back: shared::give_back;
    BY_CPU
};

/// The table for a thread that uses its CPU's arrays. It gets calls that miss or are counted.
static CPU_ENTRY: Serve = table! {
    malloc: malloc_by_cpu_entry,
    free: cpu::free_other,
    unknown: shared::free_unknown,
    large: cpu::allocate_large,
    allocate: shared::allocate_by_cpu,
    give_back: cpu::give_back;
    CPU_ENTRY
};

pub(crate) static SHARING: shared::Tables =
    shared::Tables { shared: &SHARED, by_cpu: &BY_CPU, cpu_entry: &CPU_ENTRY };

#[cfg(feature = "debug")]
use super::modes::malloc_by_cpu_entry;
#[cfg(not(feature = "debug"))]
use super::shared::malloc_by_cpu as malloc_by_cpu_entry;

#[cfg(feature = "debug")]
mod drawn_from {
    use super::super::{cpu, modes, own, resize, shared};
    use super::Serve;

    pub(super) static OWN: Serve = Serve {
        malloc: own::malloc,
        free: own::free,
        unknown: own::free_unknown,
        large: own::allocate_large,
        allocate: modes::allocate_own,
        give_back: own::give_back,
        resize: resize::resize,
        drawn: &OWN,
        plain: &super::OWN,
    };

    pub(super) static SHARED: Serve = Serve {
        malloc: modes::malloc_shared,
        free: shared::free_other,
        unknown: shared::free_unknown,
        large: shared::allocate_large,
        allocate: modes::allocate_apart,
        give_back: shared::give_back,
        resize: resize::resize,
        drawn: &SHARED,
        plain: &super::SHARED,
    };

    pub(super) static BY_CPU: Serve = Serve {
        malloc: modes::malloc_apart,
        free: shared::free_other,
        unknown: shared::free_unknown,
        large: shared::allocate_large,
        allocate: modes::allocate_apart,
        give_back: shared::give_back,
        resize: resize::resize,
        drawn: &BY_CPU,
        plain: &super::BY_CPU,
    };

    pub(super) static CPU_ENTRY: Serve = Serve {
        malloc: modes::malloc_by_cpu_entry,
        free: cpu::free_other,
        unknown: shared::free_unknown,
        large: cpu::allocate_large,
        allocate: modes::allocate_apart,
        give_back: cpu::give_back,
        resize: resize::resize,
        drawn: &CPU_ENTRY,
        plain: &super::CPU_ENTRY,
    };
}

const NEW: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NEW);
static STARTING: Lock<()> = Lock::new(());
/// Threads wait here before they get a cache, so that no thread with a block forks before the fork
/// hooks are registered.
static JOINING: Registration = Registration::new();

// A thread's first call. --------------------------------------------------------------------------

fn allocate_first(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    match begin() {
        Some(hot) => (hot.serve().allocate)(size, align, zero, origin, hot),
        None => answer(ptr::null_mut()),
    }
}

/// # Safety
///
/// As `free`.
unsafe fn give_back_first(
    block: *mut u8,
    _hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    if block.is_null() {
        return;
    }
    // A thread that frees only blocks outside slabs needs no cache.
    let is_slot = matches!(MAP.lookup(block.addr()).1.kind(), Kind::Slab(_));
    let hot = if is_slot || has_started() && (chosen_front().is_some() || hardened::is_on()) {
        begin()
    } else {
        None
    };
    match hot {
        // SAFETY: the caller gives the block away, if it is one.
        Some(hot) => unsafe { hot.serve().take_back(block, hot, what) },
        // SAFETY: the caller gives the block away, if it is one.
        None => unsafe { foreign::give_back(block, what) },
    }
}

/// # Safety
///
/// As `realloc`.
unsafe fn resize_first(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8 {
    match begin() {
        // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
        Some(hot) => unsafe { (hot.serve().resize)(block, size, hot, what) },
        // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
        None => unsafe { resize::resize(block, size, hot, what) },
    }
}

pub(crate) fn has_started() -> bool {
    STATE.load(Ordering::Acquire) == READY
}

/// Returns false if there is no memory, or in a signal handler that interrupted a slow operation.
pub(super) fn ensure_started() -> bool {
    if !has_started() && (sync::is_interrupted() || !start()) {
        return false;
    }
    JOINING.once(join);
    true
}

/// Decides which front or cache serves the calling thread, and makes a cache if needed now. Returns
/// `None` if the heap has not started and cannot start now.
#[cold]
#[inline(never)]
pub(super) fn begin() -> Option<&'static Hot> {
    if !ensure_started() {
        return None;
    }
    // If a front calls this, the fast word leads to the front already, and only a cache is missing.
    if is_at_sentinel()
        && let Some(front) = chosen_front()
    {
        words::see_calls(front.get());
        return Some(front.get());
    }
    Some(begin_thread())
}

#[inline(never)]
fn is_at_sentinel() -> bool {
    ptr::eq(words::hot(), SENTINEL.get())
}

/// The front that gets the thread's calls first, if any.
fn chosen_front() -> Option<&'static Front> {
    if foreign::peer().is_some() {
        Some(&modes::PASSED_ON_FRONT)
    } else if modes::is_asked_for() {
        Some(&modes::OBSERVED_FRONT)
    } else if hooks::is_debugging() {
        Some(&modes::DEBUG_FRONT)
    } else {
        None
    }
}

/// Gives the thread a cache if it has nothing. Call this only after the heap has started.
#[inline(never)]
pub(super) fn begin_thread() -> &'static Hot {
    // The start of the heap may have allocated, and so may have given this thread its cache.
    if !matches!(words::get(), Own::Nothing) {
        return words::has();
    }
    if hardened::is_on() {
        if let Some(cache) = hardened_cache() {
            words::set_hardened(cache);
            // The low bit marks a hardened heap's cache, at a multiple of 64.
            let token = ptr::from_ref(cache).cast_mut().cast::<u8>().wrapping_add(1);
            os::watch_this_thread(Exit::Cache, token.cast());
            return words::has();
        }
        return modes::LATE_HARDENED_FRONT.get();
    }
    if shared::is_for_all() {
        shared::first();
        return words::has();
    }
    // The count comes first: other threads may get here while this thread makes its cache.
    let is_beyond = own::LIVE.fetch_add(1, Ordering::Relaxed) >= most_of_their_own();
    if (is_beyond || cache::is_much_handed_over()) && shared::join_beside() {
        own::LIVE.fetch_sub(1, Ordering::Relaxed);
        return words::has();
    }
    let Some(cache) = CACHES.adopt_or_make() else {
        own::LIVE.fetch_sub(1, Ordering::Relaxed);
        return modes::LATE_FRONT.get();
    };
    cache.is_abandoned.store(false, Ordering::Relaxed);
    {
        // The thread that had the cache before may not have left it yet.
        let _order = cache.lock.lock();
        cache.hot.serve_by(&OWN);
        cache.begin();
    }
    // SAFETY: this thread has just taken its ownership, and has no other cache.
    let cache = unsafe { OwnCache::of(cache) };
    words::set_cache(cache);
    fence(Ordering::SeqCst);
    if drawn::is_sampling() && !cache.sampling.is_on() {
        // Sampling began after this cache was checked.
        let _order = cache.enter();
        cache.follow_sampling();
    }
    os::watch_this_thread(Exit::Cache, ptr::from_ref(cache.get()).cast_mut().cast());
    words::has()
}

fn hardened_cache() -> Option<&'static hardened::Cache> {
    if sync::is_interrupted() {
        return None;
    }
    let is_full = hardened::has_groups();
    let serve = if is_full { &modes::HARDENED_FULL } else { &modes::HARDENED };
    hardened::Cache::adopt_or_make(serve)
}

/// Threads that get their own cache with `cache=auto`: two for each CPU, and one more.
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

/// Call this in a forked child, which has one thread.
pub(super) fn forget_after_fork(has_own: bool) {
    own::LIVE.store(has_own.into(), Ordering::Relaxed);
}

/// Begins to count the calling thread's calls to the heap. If `keeps_sites`, counts by stack, too.
/// Counts nest: an outer count includes the inner counts.
///
/// # Errors
///
/// [`CannotCount`] says why counting is not possible.
///
/// ```
/// use heapwright::heap;
/// heap::count_begin(false).unwrap();
/// let block = heap::malloc(100);
/// # // SAFETY: the block is ours.
/// unsafe { heap::free(block) };
/// let (counted, _) = heap::count_end().unwrap();
/// assert_eq!((counted.allocations, counted.frees, counted.peak_bytes), (1, 1, 100));
/// ```
#[cfg(feature = "debug")]
pub fn count_begin(keeps_sites: bool) -> Result<(), CannotCount> {
    if !ensure_started() {
        return Err(CannotCount::NoMemory);
    }
    if foreign::peer().is_some() {
        return Err(CannotCount::NotServing);
    }
    tallies::begin(keeps_sites)?;
    words::see_calls(modes::OBSERVED_FRONT.get());
    Ok(())
}

/// Ends the innermost count of the calling thread. The flag says whether the counts are complete:
/// memory to keep them may have run out. `None` if the thread counts nothing.
#[cfg(feature = "debug")]
pub fn count_end() -> Option<(Allocations, bool)> {
    let (counted, is_all, goes_on) = tallies::end()?;
    if !goes_on {
        words::see_calls(chosen_front().map_or_else(words::has, Front::get));
    }
    Some((counted, is_all))
}

/// Samples a block every `period` bytes, on average. Returns false if the heap cannot start or does
/// not serve `malloc`, or if `by` may not begin now (`drawn::begin_if`).
#[cfg(feature = "debug")]
pub(crate) fn begin_sampling(period: usize, by: drawn::By) -> bool {
    let is_ours = || foreign::peer().is_none() && !hooks::is_debugging();
    drawn::begin_if(|| ensure_started() && is_ours(), period, by)
}

/// Publishes the contents of the thread's cache and of the shared caches, for statistics.
pub(crate) fn publish() {
    publish_own();
    shared::publish();
}

/// [`publish`] for the calling thread's cache alone. Takes no lock.
pub(crate) fn publish_own() {
    if let Some(cache) = words::cache() {
        cache.publish();
    }
}

/// Makes [`free_sized_fast`](super::free_sized_fast) refuse every block, in this thread and in
/// threads that begin to allocate later. This is for a program with an `operator delete` of its
/// own, which the sized `operator delete` must call.
///
/// # Safety
///
/// No other thread uses the heap during the call. The call is made when a process starts.
pub unsafe fn forward_sized_frees() {
    // SAFETY: by the contract there is no other thread, and this is the calling thread's cache.
    unsafe { cache::forward_sized_frees(words::cache().as_deref()) };
}

/// Starts the heap, once. Returns false if there is no memory.
#[cold]
#[inline(never)]
fn start() -> bool {
    let _starting = STARTING.lock();
    match STATE.load(Ordering::Acquire) {
        READY => return true,
        FAILED => return false,
        _ => {}
    }
    // If a peer serves all calls, this copy serves only first-class heaps, and takes no options.
    let peered = foreign::find_peer();
    if !substrate::open(|| if peered { &Options::DEFAULT } else { options::get() }) {
        STATE.store(FAILED, Ordering::Release);
        return false;
    }
    #[cfg(feature = "debug")]
    if !peered {
        hooks::start();
        drawn::start(options::get());
    }
    sync::prepare_owner_locks();
    if !peered && !hooks::is_debugging() {
        hardened::start(options::get(), drawn::draw_for_hardened);
    }
    if !peered && (hooks::is_debugging() || hardened::is_on()) {
        tell_apart();
    }
    if !peered && !hooks::is_debugging() && !hardened::is_on() {
        // If there is no memory for shared caches, there is hardly any for other caches.
        shared::start(&SHARING);
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

/// Registers the fork handlers, and begins parts that may allocate. Call this without a lock.
fn join() {
    substrate::begun();
    fork::join(Part::Heap, &HANDLERS);
    trace::begun();
    #[cfg(feature = "debug")]
    {
        crate::debug::begun();
        // A profile may begin later, while other locks are held (`status`).
        crate::samples::join();
        if foreign::peer().is_none() && !hooks::is_debugging() && !hardened::is_on() {
            drawn::begun(options::get());
        }
    }
}

/// The end of a thread with a cache, or with our area of restartable sequences.
unsafe extern "C" fn thread_exit(token: *mut c_void) {
    if token == cpu::NO_CACHE {
        shared::leave_cpu_entry();
        return cpu::leave_sequences();
    }
    let is_hardened = token.addr() & 1 != 0;
    let late = if is_hardened { &modes::LATE_HARDENED_FRONT } else { &modes::LATE_FRONT };
    words::set_exited(late.get());
    cpu::leave_sequences();
    if is_hardened {
        let cache = token.cast::<u8>().wrapping_sub(1).cast::<hardened::Cache>();
        // SAFETY: the mark says that the token is the thread's cache of the hardened heap.
        return unsafe { &*cache }.leave();
    }
    // SAFETY: the token is the thread's cache.
    let cache = unsafe { &*token.cast::<Cache>() };
    own::LIVE.fetch_sub(1, Ordering::Relaxed);
    debug_assert!(cache.owned_by() == Use::Thread);
    cache.abandon();
}

/// Makes the C layer tell the forms of C++'s operators apart from now on.
///
/// `operator new[]` forwards to `operator new`, so that a program may replace `operator new` alone.
/// Debug and hardened heaps must know which form was called, so the C layer's forms jump through a
/// table. This function runs before the first block. Otherwise a block that `new[]` made earlier
/// would count as a block of `new`, and `delete[]` would report it.
///
/// If there is a C layer, a hidden weak symbol names a word with the address of its function.
#[cfg(all(
    feature = "interpose",
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn tell_apart() {
    let word: *const Option<extern "C" fn()>;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads our own offset table: 0 for a weak symbol that is not defined.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_tell_forms_apart",
            ".hidden __heapwright_0_1_tell_forms_apart",
            "mov {0}, qword ptr [rip + __heapwright_0_1_tell_forms_apart@GOTPCREL]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads our own offset table: 0 for a weak symbol that is not defined.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_tell_forms_apart",
            ".hidden __heapwright_0_1_tell_forms_apart",
            "adrp {0}, :got:__heapwright_0_1_tell_forms_apart",
            "ldr {0}, [{0}, :got_lo12:__heapwright_0_1_tell_forms_apart]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or the C layer's word, which only the dynamic linker writes to; 0 is `None`.
    if let Some(&Some(tell)) = unsafe { word.as_ref() } {
        tell();
    }
}

#[cfg(not(all(
    feature = "interpose",
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
const fn tell_apart() {}

// Forks. ------------------------------------------------------------------------------------------

// A forked child has one thread, and the memory of many threads. Everything under locks is
// consistent in the child (see `fork`).
//
// Threads that own a cache take no lock, and the kernel copies page by page while they run. The
// child may see one page from before a store and another from after the store. So a cache may list
// a block that its thread has handed out. The child ignores all data of such a cache about *free*
// blocks:
//
// ```text
//   another thread's cache, in the child                 the child
//   lists, depot, outgoing, remote stack, bitmaps        forgets them
//   slabs that it owned (the address map)                keeps them
//   every slot of those slabs                            counts as in use
//   runs that it kept, or was about to keep              count as in use
// ```
//
// The caches are then abandoned: the child's next thread adopts them, and can reuse their blocks.
// The child loses the free slots of other threads' slabs.

static HANDLERS: fork::Handlers = fork::Handlers { before, unlock, in_child };

/// The forking thread's cache, locked.
static MINE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

fn before() {
    // Gives the thread a cache if it has none: handlers allocate while the locks are held.
    begin_thread();
    let mine = words::cache();
    // No other lock of the heap is held while this call waits for slots (see `fork`).
    magazines::hold_slots();
    // The heap itself takes these locks in this order.
    STARTING.acquire();
    hardened::before_fork();
    control::before_fork();
    if let Some(mine) = mine {
        // Keeps visitors out of the thread's cache.
        mine.lock.acquire();
    }
    MINE.store(
        mine.map_or(ptr::null_mut(), |mine| ptr::from_ref(mine.get()).cast_mut()),
        Ordering::Relaxed,
    );
    CACHES.before_fork();
    for cache in CACHES.all() {
        if cache.is_heap() {
            cache.lock.acquire();
        }
    }
    magazines::before_fork();
}

/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: this thread, or the thread that it is a copy of, took these locks in `before`.
    unsafe { magazines::after_fork() };
    for cache in CACHES.all() {
        if cache.is_heap() {
            // SAFETY: this thread, or the thread that it is a copy of, took the lock in `before`.
            unsafe { cache.lock.release() };
        }
    }
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { CACHES.after_fork() };
    // SAFETY: null, or a cache, which is never freed.
    if let Some(mine) = unsafe { MINE.load(Ordering::Relaxed).as_ref() } {
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { mine.lock.release() };
    }
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { control::after_fork() };
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { hardened::after_fork() };
    // SAFETY: this thread, or the thread that it is a copy of, took this lock before the fork.
    unsafe { STARTING.release() };
    // SAFETY: this thread, or the thread that it is a copy of, held the slots before the fork.
    unsafe { magazines::let_slots_go() };
}

fn in_child(alone: bool) {
    forget_after_fork(words::cache().is_some());
    hardened::choose_anew_after_fork();
    #[cfg(feature = "debug")]
    crate::tallies::forget_after_fork();
    if alone {
        // No other thread was changing anything, and the abandoned caches are consistent.
        return;
    }
    magazines::forget_after_fork();
    hardened::forget_after_fork(words::hardened());
    let mine = words::cache();
    let is_gone = |cache: &Cache| {
        cache.owned_by() == Use::Thread && !mine.is_some_and(|mine| ptr::eq(mine.get(), cache))
    };
    if let Some(mine) = mine {
        mine.remote().forget_after_fork();
    }
    // With per-CPU arrays, another thread may have been moving a run to or from an array.
    if !CACHES.all().any(is_gone) && arrays::cpu_entry().is_none() {
        return;
    }
    if let Some(mine) = mine {
        mine.stash.release();
    }
    magazines::release_stashes_after_fork();
    for cache in CACHES.all().filter(|cache| is_gone(cache)) {
        cache.forget_after_fork();
    }
    cache::none_warm_after_fork();
    let frontier = chunk::usage().map_or(0, |usage| usage.frontier);
    for unit in 0..frontier {
        // SAFETY: units below the frontier are below the map's limit.
        let entry = unsafe { MAP.entry(unit) };
        if MAP.kind_of(unit, entry) == Kind::Kept {
            // The stashes of this thread and of the shared caches were released above.
            MAP.set_entry(unit, Entry::LARGE_HEAD);
            large::revive(unit);
        }
        if let Kind::Slab(class) = entry.kind()
            && let Some(cache) = CACHES.get(entry.owner()).filter(|cache| is_gone(cache))
        {
            cache.regain_after_fork(Slab::at(&MAP, unit, class));
        }
    }
    CACHES.abandon_after_fork(is_gone);
}
