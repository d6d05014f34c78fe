//! Functions for the heap as a whole, first-class heaps, and moving blocks.
//!
//! ```text
//!   control       ownership of an address; trimming; limits of address space
//!   Heap          a cache with a lock in place of a thread; destroyed as a whole
//!   moving        for each block that the program can move:
//!                   should_move(block)         can its slab be emptied (`cache::density`)?
//!                   malloc_uncached(size)      a free slot of a slab that stays
//!                   ... copies, and changes its pointers
//!                   free_uncached(block)       to its slab at once; the slab is given up if empty
//! ```
//!
//! Any thread may use a first-class heap; its users take turns. Any thread may free a block through
//! its heap or through plain `free`. Destroying a heap visits no slot, and takes time in proportion
//! to its slabs and large blocks. The next heap reuses a destroyed heap's cache and id.
//!
//! `malloc` might hand out the block that was freed last, in a slab that is to be emptied. So the
//! functions that move blocks bypass the thread's lists. If calls are traced, counted, debugged,
//! hardened or passed on, these functions do the same as `malloc` and `free`, and `should_move` is
//! false.
//!
//! Called by programs, and by the C layer (`malloc_trim`, `setrlimit`, `mlockall`, `hw_heap_*`,
//! `hw_should_move` and jemalloc's `MALLOCX_TCACHE_NONE`).

use core::ptr;

use super::foreign::{self, Found};
use super::words::{self, Own};
use super::{fast, shared, start};
use crate::address_map::{COMMON, Kind, MAP};
use crate::cache::large;
use crate::cache::{self, CACHES, Cache, Use, central, counters, density, magazines};
use crate::chunk;
use crate::drawn;
use crate::hardened;
use crate::hooks;
use crate::libc_block;
use crate::misuse::{self, Call};
use crate::options::{self, Hardening};
use crate::os;
use crate::registry::exclusive::Member;
use crate::request::{MALLOC, Origin, Request, Return};
use crate::size_class;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{self, Lock};

/// Whether an address lies in a block (in use or cached) of this process's heaps. Any address is
/// allowed. Takes constant time.
///
/// ```
/// let block = heapwright::heap::malloc(100);
/// assert!(heapwright::heap::owns(block.wrapping_add(99)));
/// let local = 0u8;
/// assert!(!heapwright::heap::owns(&local));
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[must_use]
pub fn owns(address: *const u8) -> bool {
    let (unit, entry) = MAP.lookup(address.addr());
    match MAP.kind_of(unit, entry) {
        Kind::Slab(_) | Kind::LargeHead => true,
        Kind::LargeRest(head) => MAP.kind(head) == Kind::LargeHead,
        Kind::Debug | Kind::DebugRest(_) => true,
        _ => foreign::peer_owns(address),
    }
}

/// Makes heapwright the process's `malloc` from now on. Blocks that the C library's allocator made
/// before go back to it when they are freed.
///
/// Asks the kernel for the facts that the heap needs. The plain fast heap starts with the first
/// block. With other modes, statistics, traces, samples or guarded blocks, the heap starts now:
/// preparing for stack traces takes 15 KiB of stack.
///
/// Only a C layer that is the process's `malloc` calls this, in its constructor.
pub fn take_over() {
    libc_block::record();
    let takes_stacks = super::guarding() || options::samples();
    if super::debugging() || hardens() || takes_stacks || options::detailed() {
        let _ = start::begin();
    } else {
        os::begin();
    }
}

/// The usable size of a block allocated with this size and alignment. `align` is a power of two.
/// Returns `None` if no block can be so large. Takes constant time.
///
/// ```
/// assert_eq!(heapwright::heap::good_size(100, 1), Some(112));
/// assert_eq!(heapwright::heap::good_size(usize::MAX, 1), None);
/// ```
#[must_use]
pub fn good_size(size: usize, align: usize) -> Option<usize> {
    if size > isize::MAX as usize || align > isize::MAX as usize {
        return None;
    }
    if hardens() {
        // Blocks have exactly their requested size.
        return Some(size);
    }
    let request = Request::new(size, align, false, Origin::of::<MALLOC>());
    match request.class() {
        Some(class) => Some(size_class::size(class)),
        None => size.checked_next_multiple_of(os::kernel_page_size()),
    }
}

/// Whether the process runs with the hardened heap. Reads the options if they are unread, because
/// the C layer calls this when it is loaded.
///
/// ```
/// assert!(!heapwright::heap::hardens());
/// ```
#[must_use]
pub fn hardens() -> bool {
    options::get().hardening != Hardening::Off
}

/// Whether the process keeps blocks of different tokens apart (`mode=hardened:full`). Reads the
/// options as [`hardens`] does.
///
/// ```
/// assert!(!heapwright::heap::keeps_tokens_apart());
/// ```
#[must_use]
pub fn keeps_tokens_apart() -> bool {
    options::get().hardening == Hardening::Full
}

/// Whether a resize to `size` bytes moves a block without a group into a token's group. If the
/// process [keeps tokens apart](keeps_tokens_apart), the caller then makes a new block with the
/// token.
///
/// ```
/// assert!(!heapwright::heap::comes_into_a_group(core::ptr::null(), 100));
/// ```
#[must_use]
pub fn comes_into_a_group(block: *const u8, size: usize) -> bool {
    hardened::comes_into_a_group(block, size)
}

/// Makes the hardened heap's last checks when the process ends. They take some milliseconds.
///
/// Only a C layer that sees the end calls this: once, after the program's own handlers, and only if
/// the process [`hardens`].
pub fn hardened_at_exit() {
    hardened::at_exit();
}

/// Gives memory back to the kernel: free blocks, pages of slabs without a block in use, and all
/// free runs except about `keep` bytes. Free blocks in the lists of other live threads stay.
/// Returns whether any memory went back.
///
/// Takes time in proportion to the free memory.
///
/// ```
/// let block = heapwright::heap::malloc(10 << 20);
/// // SAFETY: the block is ours and has room.
/// unsafe { block.write_bytes(1, 10 << 20) };
/// # unsafe { heapwright::heap::free(block) };
/// heapwright::heap::trim(0);
/// ```
pub fn trim(keep: usize) -> bool {
    let mut given = 0;
    start::ensure_started();
    let mine = words::cache();
    for cache in CACHES.all() {
        // Two threads may trim at once, so this function holds one lock at a time.
        if let Some(mine) = mine
            && mine.id() == cache.id()
        {
            let _order = mine.enter();
            mine.release_free();
            given += mine.purge_slabs();
        } else if cache.is_heap() {
            let _order = cache.lock.lock();
            cache.release_free();
            given += cache.purge_slabs();
        } else if cache.lives()
            // In a fork handler, other threads may be in the middle of an operation.
            && !sync::holds_all()
            && let Some(_order) = cache.lock.visit()
            && cache.lives()
        {
            given += cache.give_back_unlisted();
        }
    }
    given += cache::purge_abandoned();
    if shared::is_on() && !sync::holds_all() {
        given += magazines::purge_all();
    }
    if hardened::is_on() && !sync::is_interrupted() {
        given += hardened::trim(words::hardened());
    }
    given += chunk::purge_all(keep);
    given > 0
}

/// Gives up reserved address space, because the process will soon be allowed only `most` bytes
/// (`setrlimit(RLIMIT_AS)`). Afterwards the heap reserves space when it grows. `usize::MAX` means
/// that there is no limit any more.
///
/// ```
/// # // A process of its own: the limit is for good.
/// heapwright::heap::limit_address_space(1 << 30);
/// let block = heapwright::heap::malloc(100 << 20);
/// assert!(!block.is_null());
/// # unsafe { heapwright::heap::free(block) };
/// ```
pub fn limit_address_space(most: usize) {
    if most != usize::MAX {
        cache::note_address_limit();
        give_up_reserves();
    }
    magazines::lower_limits(|| chunk::set_limit(most));
}

/// Gives up reserved address space, because it counts against the `most` bytes that the process may
/// lock (`mlockall`). Sets no limit: the heap may still grow beyond `most` bytes.
///
/// ```
/// # // A process of its own: the reserve is gone for good.
/// heapwright::heap::give_up_reserve(8 << 20);
/// let block = heapwright::heap::malloc(100 << 20);
/// assert!(!block.is_null());
/// # unsafe { heapwright::heap::free(block) };
/// ```
pub fn give_up_reserve(most: usize) {
    give_up_reserves();
    magazines::lower_limits(|| chunk::give_up_reserve(most));
}

/// Gives up the address space that modes reserve beside the window.
fn give_up_reserves() {
    hardened::give_up_reserve();
    hooks::debug_gives_up_reserve();
}

/// Frees a block for `realloc(block, 0)`.
///
/// # Safety
///
/// As `free`.
///
/// ```
/// let block = heapwright::heap::malloc(10);
/// // SAFETY: allocated above, freed once.
/// unsafe { heapwright::heap::realloc_to_nothing(block) };
/// ```
pub unsafe fn realloc_to_nothing(block: *mut u8) {
    let (hot, what) = (words::hot(), Return::new(Call::Realloc, Origin::Malloc, None, None));
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { hot.serve().take_back(block, hot, what) }
}

/// A first-class heap. Programs use its address: see [`Heap::create`].
#[repr(transparent)]
pub struct Heap(Cache);

struct Vacant(*mut Cache);

// SAFETY: leads to caches, which any thread may reach.
unsafe impl Send for Vacant {}

static VACANT: Lock<Vacant> = Lock::new(Vacant(ptr::null_mut()));
static LIVE: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

impl Heap {
    /// Makes an empty heap. Null if there is no memory.
    ///
    /// ```
    /// use heapwright::heap::Heap;
    /// let heap = Heap::create();
    /// assert!(!heap.is_null());
    /// // SAFETY: the heap exists.
    /// let block = unsafe { Heap::alloc(heap, 100, 16, true) };
    /// assert!(!block.is_null());
    /// // SAFETY: the heap exists; none of its blocks is used any more.
    /// unsafe { Heap::destroy(heap) };
    /// ```
    #[must_use]
    pub fn create() -> *mut Self {
        if !start::ensure_started() {
            return ptr::null_mut();
        }
        let mut vacant = VACANT.lock();
        // SAFETY: null, or a cache, which is never freed.
        let cache = match unsafe { vacant.0.as_ref() } {
            Some(cache) => {
                vacant.0 = cache.abandoned().load(Ordering::Relaxed);
                Some(cache)
            }
            None => CACHES.make_new(|cache| cache.become_heap(Use::Heap)),
        };
        drop(vacant);
        let Some(cache) = cache else { return ptr::null_mut() };
        LIVE.fetch_add(1, Ordering::Relaxed);
        ptr::from_ref(cache).cast_mut().cast()
    }

    /// Allocates a block in the heap. Null if there is no memory, or `align` is no power of two.
    ///
    /// # Safety
    ///
    /// The heap exists.
    #[must_use]
    pub unsafe fn alloc(heap: *mut Self, size: usize, align: usize, zeroed: bool) -> *mut u8 {
        if size > isize::MAX as usize || !align.is_power_of_two() || align > isize::MAX as usize {
            return ptr::null_mut();
        }
        // SAFETY: by the contract the heap exists; it is a cache.
        let cache = unsafe { &(*heap).0 };
        let request = Request { size, align, zero: zeroed, origin: Origin::Malloc };
        let order = cache.lock.lock();
        let block = large::allocate_from(cache, request);
        if options::detailed() && !block.is_null() {
            // SAFETY: the block was just made, and is not null.
            let usable = unsafe { foreign::usable_size(block) };
            counters::allocation(&cache.counters, size, usable);
        }
        drop(order);
        drawn::note_made(block, request);
        block
    }

    /// Frees a block of the heap. Null does nothing. Another heap's block ends the process.
    ///
    /// # Safety
    ///
    /// The heap exists. The block is in use, and no code uses it afterwards.
    pub unsafe fn free(heap: *mut Self, block: *mut u8) {
        // SAFETY: by the contract the heap exists; caches are never freed.
        let cache: &'static Cache = unsafe { &*heap.cast::<Cache>() };
        // SAFETY: the block is in use, and no code uses it afterwards, as the caller promises.
        unsafe { free_of_heap(cache, block) };
    }

    /// Destroys the heap with all its blocks. Null does nothing.
    ///
    /// # Safety
    ///
    /// The heap exists, and no code uses it or a block of it afterwards.
    pub unsafe fn destroy(heap: *mut Self) {
        // SAFETY: null, or by the contract a heap, whose cache is never freed.
        let Some(cache) = (unsafe { heap.cast::<Cache>().as_ref() }) else { return };
        drawn::note_destroyed(cache.id());
        let order = cache.lock.lock();
        while let Some(unit) = cache.large.first() {
            cache.large.remove(&MAP, unit);
            let was_there = large::free(unit, |_, _| false);
            debug_assert!(was_there);
        }
        cache.give_all_slabs();
        drop(order);
        let mut vacant = VACANT.lock();
        cache.abandoned().store(vacant.0, Ordering::Relaxed);
        vacant.0 = ptr::from_ref(cache).cast_mut();
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Frees a block that must be of `heap`.
///
/// # Safety
///
/// The block is in use, and no code uses it afterwards.
unsafe fn free_of_heap(heap: &'static Cache, block: *mut u8) {
    if block.is_null() {
        return;
    }
    let address = block.addr();
    let (owner, usable) = match foreign::find(Call::HeapFree, address) {
        Found::Slot { owner, class } => (owner, size_class::size(class)),
        Found::Large { unit } => {
            (MAP.record(unit).heap.load(Ordering::Relaxed), large::usable(unit))
        }
        Found::Foreign => foreign::refuse(Call::HeapFree, address),
    };
    if owner != heap.id() {
        misuse::wrong_heap(Call::HeapFree, address, usable);
    }
    let hot = words::hot();
    // SAFETY: the block is in use, and no code uses it afterwards, as the caller promises.
    unsafe { hot.serve().take_back(block, hot, Return::PLAIN) };
}

pub(super) fn before_fork() {
    VACANT.acquire();
}

/// # Safety
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread, or the thread that it is a copy of, holds the lock.
    unsafe { VACANT.release() };
}

/// Whether this thread may now take slots from slabs, and return slots to them, without its lists.
fn is_direct() -> bool {
    words::is_direct() && !sync::is_interrupted()
}

/// Whether a move of `block` would free memory sooner. If so, the block lies in one of the sparsest
/// slabs of its size class, and free slots of other slabs could take all blocks of this slab.
///
/// The calling thread moves blocks among its own slabs, or, with shared caches, among the common
/// slabs. The answer is false for blocks of other threads, first-class heaps and other allocators,
/// and for samples of a heap profile. It is also false for sizes of whole pages, whose memory goes
/// back by itself. The address may be any.
///
/// The answer is advice from a survey of the heap. The survey is up to 100 ms old, or older if
/// surveys take more than 1 ms. A call that makes a survey takes some 20 ns for each 64 KiB of the
/// heap, not counting the inner parts of large blocks. Other calls take constant time. At most four
/// threads with caches of their own get answers at a time.
///
/// # Examples
///
/// ```
/// use heapwright::heap;
/// let mut block = heap::malloc(100);
/// if heap::should_move(block) {
///     let new = heap::malloc_uncached(100);
///     // SAFETY: both have 100 bytes.
///     unsafe { core::ptr::copy_nonoverlapping(block, new, 100) };
///     // SAFETY: no code uses it any more.
///     unsafe { heap::free_uncached(block) };
///     block = new;
/// }
/// # unsafe { heap::free(block) };
/// ```
#[must_use]
pub fn should_move(block: *const u8) -> bool {
    let (unit, entry) = MAP.lookup(block.addr());
    let Kind::Slab(class) = entry.kind() else { return false };
    if !is_direct() {
        return false;
    }
    let mine = match words::get() {
        Own::Cache(cache) => cache.id(),
        Own::Shared(_) | Own::ByCpu => COMMON,
        Own::Exited | Own::Hardened(_) | Own::Nothing => return false,
    };
    entry.owner() == mine && density::is_sparse(mine, unit, class)
}

/// Allocates as `malloc` does, but from a slab that is not worth emptying. Calls `malloc` if it
/// finds no such slab with a free slot, or if the block is over 32 KiB. It also does so if
/// [`should_move`] was not called lately.
///
/// This takes longer than `malloc`, because it checks up to 64 slabs. A heap profile counts the new
/// block as the old one, unless `malloc` made it. Returns null, with `errno` set, if there is no
/// memory.
///
/// # Examples
///
/// ```
/// let block = heapwright::heap::malloc_uncached(100);
/// assert!(!block.is_null());
/// # unsafe { heapwright::heap::free(block) };
/// ```
#[must_use]
pub fn malloc_uncached(size: usize) -> *mut u8 {
    let request = Request { size, align: 1, zero: false, origin: Origin::of::<MALLOC>() };
    if let Some(class) = request.class().filter(|_| is_direct()) {
        let block = match words::get() {
            Own::Cache(cache) => {
                let _order = cache.enter();
                cache.alloc_dense(class)
            }
            Own::Shared(_) | Own::ByCpu => central::alloc_dense(class),
            Own::Exited | Own::Hardened(_) | Own::Nothing => None,
        };
        if let Some(block) = block {
            return block;
        }
    }
    fast::malloc(size)
}

/// Frees a block as `free` does, but returns it to its slab at once.
///
/// A block of another thread's cache goes where `free` sends it.
///
/// # Safety
///
/// As [`free`](fn@super::free): the block is of this heap, in use, and not used afterwards.
///
/// # Examples
///
/// ```
/// let block = heapwright::heap::malloc(100);
/// // SAFETY: the block is ours, and freed once.
/// unsafe { heapwright::heap::free_uncached(block) };
/// ```
pub unsafe fn free_uncached(block: *mut u8) {
    let (unit, entry) = MAP.lookup(block.addr());
    if let Kind::Slab(class) = entry.kind()
        && is_direct()
        && let Some((_, 0)) = Slab::at(&MAP, unit, class).locate(block.addr())
    {
        match words::get() {
            Own::Cache(cache) if cache.id() == entry.owner() => {
                let _order = cache.enter();
                // SAFETY: the caller gives the block of this class away.
                if unsafe { cache.put_if_mine(class, block.cast()) } {
                    return;
                }
            }
            // SAFETY: the caller gives the block away, which lies in a common slab of this class.
            _ if entry.owner() == COMMON && unsafe { central::put(class, block.cast()) } => return,
            _ => {}
        }
    }
    // SAFETY: the block is in use, and the caller gives it away.
    unsafe { fast::free(block) };
}
