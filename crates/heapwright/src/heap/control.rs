//! What a program says of the whole heap: give memory back, have less address space; and
//! whether an address is the heap's.
//!
//! Called by the C layer (`malloc_trim`, `setrlimit`, `mlockall`).

use super::start::{self, Mine};
use super::{foreign, own_word, shared};
use crate::address_map::{Kind, MAP};
use crate::cache::{self, CACHES, Use, magazines};
use crate::chunk;
use crate::hardened;
use crate::libc_block;
use crate::options::{self, Hardening};
use crate::os;
use crate::request::{MALLOC, Origin, Request};
use crate::size_class;
use crate::sync;

/// Whether an address lies in a block (in use or cached) of this process's
/// heaps. Constant time; any address may be asked about.
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

/// Makes heapwright's the process's `malloc` from now on. Blocks that the C library's own allocator
/// has made before go to the C library when they are freed; no later block does.
///
/// The heap asks the kernel now for all facts that it asks for once. In fast mode these are few,
/// and the heap itself begins with the first block. If it takes stack traces, it begins now:
/// preparing for them takes 15 KiB of stack.
///
/// Only a C layer that is the process's `malloc` calls this, in its constructor.
pub fn take_over() {
    libc_block::record();
    let takes_stacks = super::guarding() || options::samples();
    if super::debugging() || hardens() || takes_stacks || options::detailed() {
        let _ = start::mine();
    } else {
        os::begin();
    }
}

/// How many bytes a block would have that is asked for so. `align` is a power of two. `None`: there can be none so
/// large. Constant time.
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
        // Blocks are as long as was asked for.
        return Some(size);
    }
    let request = Request::new(size, align, false, Origin::of::<MALLOC>());
    match request.class() {
        Some(class) => Some(size_class::size(class)),
        None => size.checked_next_multiple_of(os::kernel_page_size()),
    }
}

/// Whether the process runs with the hardened heap. Reads the options, if nobody has before: the C layer asks when it is
/// loaded, to know calls apart.
///
/// ```
/// assert!(!heapwright::heap::hardens());
/// ```
#[must_use]
pub fn hardens() -> bool {
    options::get().hardening != Hardening::Off
}

/// Whether the process is to keep blocks of different tokens apart (`mode=hardened:full`). Reads the options as [`hardens`]
/// does.
///
/// ```
/// assert!(!heapwright::heap::keeps_tokens_apart());
/// ```
#[must_use]
pub fn keeps_tokens_apart() -> bool {
    options::get().hardening == Hardening::Full
}

/// Whether a block becomes one of a token's group if it is made `size` bytes long: it is in none, and will be a slot. Then a
/// new block is to be made with the token, where the process [keeps these apart](keeps_tokens_apart).
///
/// ```
/// assert!(!heapwright::heap::comes_into_a_group(core::ptr::null(), 100));
/// ```
#[must_use]
pub fn comes_into_a_group(block: *const u8, size: usize) -> bool {
    hardened::comes_into_a_group(block, size)
}

/// The process is about to end: the hardened heap looks at what it can look at in some milliseconds. Called once, by the
/// thread that ends the process, after the program's own handlers.
///
/// Only a C layer that sees the end calls this, and only while it [`hardens`].
pub fn hardened_at_exit() {
    hardened::at_exit();
}

/// Gives memory back to the kernel: the free blocks of all threads (but for what
/// lies in the lists of others that live), of first-class heaps and of threads
/// that have ended, pages of slabs without a block in use, and all free runs but
/// about `keep` bytes. Returns whether any went back.
///
/// Takes time in proportion to what is free.
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
    let mine = start::mine();
    for cache in CACHES.all() {
        // One lock at a time: two threads may trim at once.
        if let Mine::Cache(mine) = mine
            && mine.id() == cache.id()
        {
            let _order = mine.enter();
            mine.release_free();
            given += mine.purge_slabs();
        } else if cache.owned_by() == Use::Heap {
            let _order = cache.lock.lock();
            cache.release_free();
            given += cache.purge_slabs();
        } else if cache.lives()
            // In a fork handler other threads may be in the middle of something.
            && !sync::holds_all()
            && let Some(_order) = cache.lock.visit()
            && cache.lives()
        {
            cache.release_unlisted();
            given += cache.purge_slabs();
        }
    }
    given += cache::purge_abandoned();
    if shared::is_on() && !sync::holds_all() {
        given += magazines::purge_all();
    }
    if hardened::is_on() && !sync::is_interrupted() {
        given += hardened::trim(own_word::hardened());
    }
    given += chunk::purge_all(keep);
    given > 0
}

/// Gives reserved address space up, because the process is about to be allowed
/// only `most` bytes of it (`setrlimit(RLIMIT_AS)`): what is reserved counts.
/// The heap goes on, and reserves what it needs when it needs it. `usize::MAX`: there is
/// no limit any more.
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
        cache::note_scarce();
    }
    magazines::lower_limits(|| chunk::set_limit(most));
}

/// Gives reserved address space up, because it counts against the `most` bytes that the process
/// may lock (`mlockall`). Sets no limit: the heap may grow beyond.
///
/// ```
/// # // A process of its own: the reserve is gone for good.
/// heapwright::heap::give_up_reserve(8 << 20);
/// let block = heapwright::heap::malloc(100 << 20);
/// assert!(!block.is_null());
/// # unsafe { heapwright::heap::free(block) };
/// ```
pub fn give_up_reserve(most: usize) {
    magazines::lower_limits(|| chunk::give_up_reserve(most));
}
