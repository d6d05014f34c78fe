//! Blocks by their entries: every `free` that the thread's own table does not finish.
//!
//! ```text
//!   give_back --> slab    of this thread's cache       Cache::free
//!                         common                       `shared`
//!                         of another thread's          the calling thread's outgoing batch
//!                         of a heap, or of samples     under its lock
//!             --> large   a run of units               to the thread's stash, or to the chunk
//!             --> guarded                              `drawn`
//!             --> no block of this heap                the C library's, another copy's, or misuse
//! ```
//!
//! The *block* decides, never the process's mode. Blocks that the C library made before heapwright
//! took over (`libc_block`) go to the C library. Any other address is misuse.
//!
//! A copy of heapwright in a Rust program may find a preloaded copy. Then it passes *all* calls on
//! to the preloaded copy, so that the process has one heap.
//!
//! Called by the other files of `heap`, except `fast`.

use core::ptr;

use super::shared;
use super::words::{self, Own};
use crate::address_map::{COMMON, Kind, MAP};
use crate::cache::large;
use crate::cache::{self, CACHES, Use, deferred};
use crate::drawn;
use crate::hardened;
use crate::hooks;
use crate::libc_block;
use crate::misuse::{self, Call};
use crate::os;
use crate::remote::Block;
use crate::request::{Origin, Return};
use crate::size_class::{self, UNIT};
use crate::slab::Slab;
use crate::sync;
#[cfg(not(feature = "interpose"))]
use crate::sync::Lock;
#[cfg(not(feature = "interpose"))]
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::{AtomicU64, Ordering};

static PASSED_ON: AtomicU64 = AtomicU64::new(0);

pub(crate) fn passed_on() -> u64 {
    PASSED_ON.load(Ordering::Relaxed)
}

#[derive(Clone, Copy)]
pub(super) enum Found {
    Slot {
        owner: u32,
        class: usize,
    },
    /// The large block at a unit.
    Large {
        unit: usize,
    },
    /// Guarded, another allocator's, or no block at all.
    Foreign,
}

/// Finds the block that begins at `address`. A wrong address in a slab ends the process.
#[inline(always)]
pub(super) fn find(call: Call, address: usize) -> Found {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Slab(class) => {
            // This is arithmetic alone, because only the owner may touch the record. A double free
            // shows when the slot returns to the slab.
            match Slab::at(&MAP, unit, class).locate(address) {
                Some((_, 0)) => Found::Slot { owner: entry.owner(), class },
                _ => misuse::not_a_block(call, address),
            }
        }
        Kind::LargeHead if address.is_multiple_of(UNIT) => Found::Large { unit },
        _ => Found::Foreign,
    }
}

/// Frees a block of any kind. Null does nothing.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
pub(super) unsafe fn give_back(block: *mut u8, what: Return) {
    if block.is_null() {
        return;
    }
    match find(what.misused(), block.addr()) {
        // SAFETY: `find` describes the block; by the contract it is in use.
        Found::Slot { owner, class } => unsafe { free_slot(owner, class, block.cast()) },
        Found::Large { unit } => {
            if !free_large(unit) {
                misuse::double_free(what.misused(), block.addr(), large::usable(unit));
            }
        }
        // SAFETY: the caller gives the block away, if it is one.
        Found::Foreign => unsafe { free_unknown(what.misused(), block) },
    }
}

/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and in use.
unsafe fn free_slot(owner: u32, class: usize, block: *mut Block) {
    if owner == COMMON {
        // SAFETY: the caller gives the block of this class and a common slab away.
        return unsafe { shared::free_slot(class, block) };
    }
    let other = CACHES.get(owner);
    match (other.map(cache::Cache::owned_by), words::get()) {
        (_, Own::Cache(cache)) if cache.id() == owner => {
            let _order = cache.enter();
            // SAFETY: the caller gives the block of this class away; its owner's lock is held.
            unsafe { cache.free(class, block) };
        }
        // SAFETY: the caller gives the block of this class and the samples' heap away.
        (Some(Use::Samples), _) => unsafe { drawn::free_slot(class, block) },
        // The owner drains the block later.
        (Some(_), _) if words::shares() && sync::is_interrupted() => {
            // SAFETY: the caller gives the block of this owner and class away.
            unsafe { cache::send(owner, class, block) };
        }
        (Some(Use::Heap | Use::Late), _) => {
            drawn::note_freed(owner, block.cast());
            if let Some(heap) = other {
                // SAFETY: the caller gives away the block of this class; the heap is its owner.
                unsafe { large::free_slot(heap, class, block) };
            }
        }
        (_, Own::Cache(cache)) => {
            // SAFETY: the caller gives away the block of this class and owner.
            unsafe { cache.free_remote(owner, class, block) };
        }
        // A thread without a cache sends blocks one by one.
        // SAFETY: the caller gives the block of this owner and class away.
        _ => unsafe { shared::send_home(owner, class, block) },
    }
}

/// Returns false if the block was freed before.
#[inline(always)]
fn free_large(unit: usize) -> bool {
    match large::heap_of(unit) {
        Some(heap) if heap.owned_by() == Use::Samples => drawn::free_large(unit, heap),
        Some(heap) => {
            drawn::note_freed(heap.id(), MAP.address_of(unit));
            large::free_of_heap(unit, heap)
        }
        None => large::free(unit, keep),
    }
}

/// Keeps a run in the thread's stash, if there is room.
fn keep(unit: usize, units: usize) -> bool {
    if let Some(cache) = words::cache() {
        let _order = cache.enter();
        return cache.stash.keep(unit, units);
    }
    if !shared::is_on() {
        return false;
    }
    if sync::is_interrupted() {
        // SAFETY: the caller gives away the block of this run, and its record says kept.
        unsafe { deferred::defer_run(unit) };
        return true;
    }
    shared::acquire().is_some_and(|held| held.stash.keep(unit, units))
}

/// Frees a block outside the fast heap.
///
/// # Safety
///
/// The block is in use, and no code uses it afterwards. Or the block is guarded.
#[cold]
unsafe fn free_unknown(call: Call, block: *mut u8) {
    if is_guarded(call, block.addr()) {
        // SAFETY: a guarded block, which the caller gives away if it is in use.
        return unsafe { drawn::free_guarded(call, block) };
    }
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.free)(block) };
    }
    // SAFETY: the caller gives the block away, if it is one.
    if unsafe { !pass_on(block) } {
        misuse::foreign(call, block.addr());
    }
}

/// Whether an address outside the fast heap's blocks is in memory of guarded blocks. Returns false
/// if the address is outside all our memory. Any other address ends the process.
pub(super) fn is_guarded(call: Call, address: usize) -> bool {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Foreign => false,
        _ if drawn::has(address) => true,
        _ => misuse::not_a_block(call, address),
    }
}

/// Ends the process: the address is no block of the heap that the call names.
#[cold]
pub(super) fn refuse(call: Call, address: usize) -> ! {
    if is_guarded(call, address) {
        let size = drawn::size_of_guarded(call, ptr::without_provenance(address));
        misuse::wrong_heap(call, address, size);
    }
    misuse::foreign(call, address)
}

/// Frees a block that the C library made before heapwright took over. False for other blocks.
///
/// # Safety
///
/// As `free`.
pub(super) unsafe fn pass_on(block: *mut u8) -> bool {
    let Some(free) = os::libc_free().filter(|_| libc_block::take(block.addr())) else {
        return false;
    };
    PASSED_ON.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the C library made the block, and has not freed it yet.
    os::keeping_errno(|| unsafe { free(block) });
    true
}

/// The usable bytes of a block: at least its requested size. 0 for null. Takes constant time.
///
/// # Safety
///
/// The block is in use.
///
/// ```
/// use heapwright::heap;
/// let block = heap::malloc(100);
/// // SAFETY: the block is in use.
/// assert_eq!(unsafe { heap::usable_size(block) }, 112);
/// # unsafe { heap::free(block) };
/// ```
#[must_use]
pub unsafe fn usable_size(block: *const u8) -> usize {
    const CALL: Call = Call::UsableSize;
    if block.is_null() {
        return 0;
    }
    let what = Return::new(CALL, Origin::Malloc, None, None);
    if hooks::is_debugging()
        && let Some(usable) = hooks::usable_size(block)
    {
        return usable;
    }
    if hardened::is_on()
        && let Some(usable) = hardened::usable_size(block, what)
    {
        return usable;
    }
    match find(CALL, block.addr()) {
        Found::Slot { class, .. } => size_class::size(class),
        Found::Large { unit } => large::usable(unit),
        Found::Foreign if is_guarded(CALL, block.addr()) => drawn::size_of_guarded(CALL, block),
        Found::Foreign => size_elsewhere(block),
    }
}

#[cold]
fn size_elsewhere(block: *const u8) -> usize {
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.usable_size)(block) };
    }
    match libc_block::usable_size(block.addr()) {
        Some(usable) => usable,
        None => misuse::foreign(Call::UsableSize, block.addr()),
    }
}

/// The functions of a copy of heapwright that serves the whole process.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) malloc: unsafe extern "C" fn(usize) -> *mut u8,
    pub(super) calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    pub(super) memalign: unsafe extern "C" fn(usize, usize) -> *mut u8,
    pub(super) realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    pub(super) free: unsafe extern "C" fn(*mut u8),
    pub(super) usable_size: unsafe extern "C" fn(*const u8) -> usize,
    pub(super) owns: unsafe extern "C" fn(*const u8) -> bool,
}

pub(super) fn peer_owns(address: *const u8) -> bool {
    // SAFETY: the peer's function takes any address.
    peer().is_some_and(|peer| unsafe { (peer.owns)(address) })
}

/// The preloaded copy of heapwright, if this copy is only linked into the program.
#[cfg(not(feature = "interpose"))]
pub(super) fn peer() -> Option<&'static Peer> {
    // SAFETY: null, or set once to a table that is never freed.
    unsafe { PEER.load(Ordering::Acquire).as_ref() }
}

#[cfg(feature = "interpose")]
pub(super) const fn peer() -> Option<&'static Peer> {
    None
}

#[cfg(not(feature = "interpose"))]
static PEER: AtomicPtr<Peer> = AtomicPtr::new(core::ptr::null_mut());

/// Looks for a preloaded copy, before any block of this copy exists.
#[cfg(not(feature = "interpose"))]
pub(super) fn find_peer() -> bool {
    use core::mem::transmute;
    static TABLE: Lock<Option<Peer>> = Lock::new(None);
    if os::symbol(c"hw_version").is_null() {
        return false;
    }
    let names =
        [c"malloc", c"calloc", c"memalign", c"realloc", c"free", c"malloc_usable_size", c"hw_owns"];
    let found = names.map(os::symbol);
    if found.iter().any(|f| f.is_null()) {
        return false;
    }
    // SAFETY: the preloaded copy exports its `malloc` with this type.
    let malloc: unsafe extern "C" fn(usize) -> *mut u8 = unsafe { transmute(found[0]) };
    // SAFETY: the preloaded copy exports its `calloc` with this type.
    let calloc: unsafe extern "C" fn(usize, usize) -> *mut u8 = unsafe { transmute(found[1]) };
    // SAFETY: the preloaded copy exports its `memalign` with this type.
    let memalign: unsafe extern "C" fn(usize, usize) -> *mut u8 = unsafe { transmute(found[2]) };
    // SAFETY: the preloaded copy exports its `realloc` with this type.
    let realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8 = unsafe { transmute(found[3]) };
    // SAFETY: the preloaded copy exports its `free` with this type.
    let free: unsafe extern "C" fn(*mut u8) = unsafe { transmute(found[4]) };
    // SAFETY: the preloaded copy exports its `malloc_usable_size` with this type.
    let usable_size: unsafe extern "C" fn(*const u8) -> usize = unsafe { transmute(found[5]) };
    // SAFETY: the preloaded copy exports its `hw_owns` with this type.
    let owns: unsafe extern "C" fn(*const u8) -> bool = unsafe { transmute(found[6]) };
    let mut table = TABLE.lock();
    let peer = table.insert(Peer { malloc, calloc, memalign, realloc, free, usable_size, owns });
    PEER.store(peer, Ordering::Release);
    true
}

#[cfg(feature = "interpose")]
pub(super) const fn find_peer() -> bool {
    false
}
