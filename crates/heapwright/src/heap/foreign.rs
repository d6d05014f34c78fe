//! Blocks of other allocators that come to our `free`.
//!
//! A preloaded `malloc` meets blocks that the C library's own allocator made:
//! a library loaded with `RTLD_DEEPBIND` calls the C library's `malloc`, and
//! hands the block to a program that calls ours. Those are recognised and
//! passed on. Anything else is misuse and is named.
//!
//! glibc's blocks carry their size in the word before them:
//!
//! ```text
//!   | previous size | size | A M P | user's bytes ...
//!                              | |
//!                              | +-- M: a mapping of its own
//!                              +---- A: not in the main heap; the arena is named
//!                                    at the start of the 64-MiB block around it
//! ```
//!
//! A header is read only where the kernel says that memory is readable. That
//! costs a read of /proc/self/maps, so the last mapping that proved to hold
//! such blocks is remembered.
//!
//! A copy of heapwright that a Rust program links does the reverse: where it
//! finds a preloaded copy in the process, it passes *everything* on to it, so
//! that there is one heap, and one account of it.

use core::ptr;

use crate::misuse::{self, Call};
use crate::os::{self, Contents};
use crate::sync::Lock;
#[cfg(not(feature = "interpose"))]
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::{AtomicU64, Ordering};

static PASSED_ON: AtomicU64 = AtomicU64::new(0);

/// How many frees were passed on to another allocator.
pub(crate) fn passed_on() -> u64 {
    PASSED_ON.load(Ordering::Relaxed)
}

/// Memory that holds blocks of the C library.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    end: usize,
    /// The main heap, which grows and shrinks with the program break.
    is_main: bool,
}

/// The region that last proved to hold blocks of the C library.
static KNOWN: Lock<Region> = Lock::new(Region { start: 0, end: 0, is_main: false });

const HEADER: usize = 16;
const PREVIOUS_IN_USE: usize = 1;
const MAPPED: usize = 2;
const NOT_MAIN: usize = 4;
/// glibc's arenas, but for the main one, begin at multiples of this.
const ARENA: usize = 64 << 20;

/// The bytes that may be used of a block of the C library, or `None` where
/// `address` is not one.
fn libc_usable(address: usize) -> Option<usize> {
    if !address.is_multiple_of(16) || address < 1 << 16 {
        return None;
    }
    // Never waits: a forked child may find the lock held by nobody it has.
    if let Some(mut known) = KNOWN.try_lock().map(|known| *known) {
        if known.is_main {
            known.end = known.end.min(os::program_break());
        }
        if let Some(usable) = usable_in(known, address) {
            return Some(usable);
        }
    }
    let Ok(mapping) = os::mapping_of(address - HEADER) else {
        // Nobody can tell what memory this is. What looks like a block is passed
        // on: the C library checks more, and ends the program where it must.
        let anywhere = Region { start: 0, end: usize::MAX, is_main: true };
        return header(anywhere, address).map(|(bytes, _)| bytes - HEADER);
    };
    let mapping = mapping?;
    // Anonymous, writable memory; not the main stack, not a file.
    let is_main = match mapping.contents() {
        Contents::Break => true,
        Contents::Anonymous => false,
        _ => return None,
    };
    if !mapping.readable || !mapping.writable {
        return None;
    }
    let region = Region { start: mapping.start, end: mapping.end, is_main };
    if let Some(usable) = usable_in_mapping(region, address) {
        return Some(usable);
    }
    if let Some(usable) = usable_in_main_elsewhere(region, address) {
        return Some(usable);
    }
    let usable =
        if is_main { usable_in(region, address)? } else { usable_in_arena(region, address)? };
    if let Some(mut known) = KNOWN.try_lock() {
        *known = region;
    }
    Some(usable)
}

/// The size and the flags in the header of a block, if that is in the region
/// and the block ends in it.
fn header(region: Region, address: usize) -> Option<(usize, usize)> {
    if !(region.start + HEADER..region.end).contains(&address) {
        return None;
    }
    // SAFETY: the word before the block is in the region, which is readable.
    let size = unsafe { ptr::with_exposed_provenance::<usize>(address - 8).read() };
    let (bytes, flags) = (size & !7, size & 7);
    let fits = bytes >= 32 && bytes <= region.end - (address - HEADER);
    fits.then_some((bytes, flags))
}

/// A block in the main heap or in an arena that is known to be one.
fn usable_in(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    let belongs = flags & MAPPED == 0 && (flags & NOT_MAIN == 0) == region.is_main;
    (belongs && bytes.is_multiple_of(16)).then(|| bytes - 8)
}

/// A block in an arena: the 64 MiB around it begin with a pointer to the arena.
fn usable_in_arena(region: Region, address: usize) -> Option<usize> {
    let heap = address & !(ARENA - 1);
    if heap < region.start {
        return None;
    }
    // SAFETY: in the region, which is readable.
    let arena = unsafe { ptr::with_exposed_provenance::<usize>(heap).read() };
    let is_arena = arena.is_multiple_of(8)
        && matches!(os::mapping_of(arena), Ok(Some(mapping)) if mapping.writable);
    if is_arena { usable_in(region, address) } else { None }
}

/// A block of the main arena where the program break could not be moved, or of
/// a C library in a namespace of its own: in some anonymous mapping. The block
/// behind it must say that this one is in use.
fn usable_in_main_elsewhere(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    if region.is_main || flags & (MAPPED | NOT_MAIN) != 0 || !bytes.is_multiple_of(16) {
        return None;
    }
    let (next, next_flags) = header(region, address + bytes)?;
    (next.is_multiple_of(16) && next_flags & PREVIOUS_IN_USE != 0).then(|| bytes - 8)
}

/// A block that is a mapping of its own. The words before it say how far the
/// mapping begins before it, and a size; together they are whole pages.
fn usable_in_mapping(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    if flags & MAPPED == 0 {
        return None;
    }
    // SAFETY: in the region, which is readable.
    let before = unsafe { ptr::with_exposed_provenance::<usize>(address - 16).read() };
    let page = os::kernel_page_size();
    let starts = (address - HEADER).checked_sub(before)?;
    let whole = starts.is_multiple_of(page) && (before + bytes).is_multiple_of(page);
    (whole && starts >= region.start).then(|| bytes - 16)
}

/// Whether an address looks like a block of the C library's own.
#[cfg(feature = "debug")]
pub(crate) fn is_block_of_libc(address: usize) -> bool {
    libc_usable(address).is_some()
}

/// Frees a block that is not heapwright's.
///
/// # Safety
///
/// The block is in use, and nobody uses it afterwards.
#[cold]
pub(super) unsafe fn free(call: Call, block: *mut u8) {
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.free)(block) };
    }
    if let (Some(free), Some(_)) = (os::libc_free(), libc_usable(block.addr())) {
        PASSED_ON.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the block has the C library's header.
        return os::keeping_errno(|| unsafe { free(block) });
    }
    misuse::foreign(call, block.addr())
}

/// Resizes a block that is not heapwright's.
///
/// # Safety
///
/// As `realloc`.
#[cold]
pub(super) unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.realloc)(block, size.max(1)) };
    }
    if let (Some(realloc), Some(_)) = (os::libc_realloc(), libc_usable(block.addr())) {
        // SAFETY: the block has the C library's header.
        return unsafe { realloc(block, size.max(1)) };
    }
    misuse::foreign(Call::Realloc, block.addr())
}

/// The bytes that may be used of a block that is not heapwright's.
#[cold]
pub(super) fn usable_size(block: *const u8) -> usize {
    if let Some(peer) = peer() {
        // SAFETY: every block of this copy comes from the peer.
        return unsafe { (peer.usable_size)(block) };
    }
    match libc_usable(block.addr()) {
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
static PEER: AtomicPtr<Peer> = AtomicPtr::new(ptr::null_mut());

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
