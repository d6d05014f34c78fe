//! Blocks of other allocators that come to our `free`, and those that stand between guards.
//!
//! Blocks that the C library's own allocator made before heapwright took over (`libc_block`) are
//! passed on to the C library. Any other address is reported as misuse.
//!
//! A copy of heapwright that a Rust program links does the reverse: where it
//! finds a preloaded copy in the process, it passes *everything* on to it, so
//! that there is one heap, and one account of it.

use core::ptr;

use super::guards;
use crate::address_map::{Kind, MAP};
use crate::libc_block;
use crate::misuse::{self, Call};
use crate::os;
#[cfg(not(feature = "interpose"))]
use crate::sync::Lock;
#[cfg(not(feature = "interpose"))]
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::{AtomicU64, Ordering};

static PASSED_ON: AtomicU64 = AtomicU64::new(0);

/// How many frees were passed on to another allocator.
pub(crate) fn passed_on() -> u64 {
    PASSED_ON.load(Ordering::Relaxed)
}

/// Whether an address that is no block of the fast heap's is in memory of guarded blocks; if not, it is outside of
/// all our memory: anything else ends the process.
fn is_guarded(call: Call, address: usize) -> bool {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Foreign => false,
        _ if guards::has(address) => true,
        _ => misuse::not_a_block(call, address),
    }
}

/// Says that what is no block of the fast heap's is none of the heap that it was given to.
#[cold]
pub(super) fn refuse(call: Call, address: usize) -> ! {
    if is_guarded(call, address) {
        misuse::wrong_heap(call, address, guards::size(call, ptr::without_provenance(address)));
    }
    misuse::foreign(call, address)
}

/// Frees a block that is not the fast heap's.
///
/// # Safety
///
/// The block is in use, and nobody uses it afterwards; or it is a guarded one.
#[cold]
pub(super) unsafe fn free(call: Call, block: *mut u8) {
    if is_guarded(call, block.addr()) {
        // SAFETY: a guarded block, which the caller gives away if it is in use.
        return unsafe { guards::free(call, block) };
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

/// Frees a block that the C library made before heapwright took over. False: it is no such block.
///
/// # Safety
///
/// As `free`.
unsafe fn pass_on(block: *mut u8) -> bool {
    let Some(free) = os::libc_free().filter(|_| libc_block::take(block.addr())) else {
        return false;
    };
    PASSED_ON.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the C library made the block, and did not free it yet.
    os::keeping_errno(|| unsafe { free(block) });
    true
}

/// Resizes a block that is not the fast heap's.
///
/// # Safety
///
/// As `realloc`.
#[cold]
pub(super) unsafe fn realloc<const FROM: u8>(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    if is_guarded(Call::Realloc, block.addr()) {
        // SAFETY: a guarded block, and afterwards only the returned one is used, as the caller promises.
        return unsafe { guards::realloc::<FROM>(block, size, align) };
    }
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.realloc)(block, size.max(1)) };
    }
    let Some(usable) = libc_block::usable_size(block.addr()) else {
        misuse::foreign(Call::Realloc, block.addr())
    };
    // The new block is heapwright's: the C library makes no more blocks.
    let new = super::malloc_aligned_for::<FROM>(size, align);
    if !new.is_null() {
        // SAFETY: both blocks have as many bytes, and the new one is ours alone.
        unsafe { ptr::copy_nonoverlapping(block, new, usable.min(size)) };
        // SAFETY: by the contract the old block is this call's to give away.
        unsafe { pass_on(block) };
    }
    new
}

/// The bytes that may be used of a block that is not the fast heap's.
#[cold]
pub(super) fn usable_size(block: *const u8) -> usize {
    if is_guarded(Call::UsableSize, block.addr()) {
        return guards::size(Call::UsableSize, block);
    }
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

/// Whether an address is in a block of the copy that everything is passed to.
pub(super) fn peer_owns(address: *const u8) -> bool {
    // SAFETY: the peer's function takes any address.
    peer().is_some_and(|peer| unsafe { (peer.owns)(address) })
}

/// The copy of heapwright that was preloaded, if this copy is only linked into
/// the program.
#[cfg(not(feature = "interpose"))]
pub(super) fn peer() -> Option<&'static Peer> {
    // SAFETY: null, or set once to a table that is never freed.
    unsafe { PEER.load(Ordering::Acquire).as_ref() }
}

/// This copy is the process's `malloc`; there is nobody to pass on to.
#[cfg(feature = "interpose")]
pub(super) const fn peer() -> Option<&'static Peer> {
    None
}

#[cfg(not(feature = "interpose"))]
static PEER: AtomicPtr<Peer> = AtomicPtr::new(core::ptr::null_mut());

/// Looks for a preloaded copy. Once, while the heap starts, before any block
/// of this copy exists.
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

/// This copy is the process's `malloc`.
#[cfg(feature = "interpose")]
pub(super) const fn find_peer() -> bool {
    false
}
