//! Defragmentation, for programs that can move their blocks: which blocks to move, and where to.
//!
//! ```text
//!   for each block that the program can move:
//!       should_move(block)         its slab is one of those that could be emptied (see `cache::density`)
//!       malloc_uncached(size)      a free slot of a slab that stays
//!       ... copies, and changes its pointers
//!       free_uncached(block)       back to its slab at once; a slab without blocks is given up
//! ```
//!
//! `malloc` would hand out the block that was freed last, which may lie in a slab that is to be emptied, and `free`
//! would keep the block in a list. So both are done on the slabs themselves, past the thread's lists.
//!
//! Where calls are traced, counted one by one, debugged or passed on to another allocator, these functions are
//! `malloc` and `free`, and nothing should be moved.
//!
//! Called by programs, and by the C layer (`hw_should_move` and jemalloc's `MALLOCX_TCACHE_NONE`).

use super::start::{self, Mine};
use super::{fast, foreign, tallies};
use crate::address_map::{COMMON, Kind, MAP};
use crate::cache::{central, density};
use crate::hooks;
use crate::options;
use crate::request::{MALLOC, Origin, Request};
use crate::slab::Slab;
use crate::sync;

/// Whether slots may be taken from slabs and given back to them past the caches and the door.
fn is_direct() -> bool {
    !options::detailed()
        && !hooks::is_debugging()
        && foreign::peer().is_none()
        && !tallies::counts_here()
        && !sync::is_interrupted()
}

/// Whether the memory of `block` would become free sooner if the program moved the block: whether it lies in one of the
/// slabs, the sparsest of their size class, that could be emptied into free slots of the others.
///
/// Asked by the thread that allocates: it moves blocks among its own slabs, or, where threads share caches, among the common
/// ones. False for all other blocks: other threads', first-class heaps', other allocators', samples of a heap
/// profile; and for sizes of whole pages, whose memory goes back by itself. Any address may be asked about.
///
/// The answer is advice: it goes by a survey of the heap that is 100 ms old, or more where a survey takes more than a hundredth of
/// that. Each survey is made by a call of this function, and takes some 20 ns for each 64 KiB of the heap without the
/// inner parts of large blocks; else the time is constant. No more than four threads with caches of their own get answers at a
/// time.
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
///     // SAFETY: nobody uses it any more.
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
    let mine = match start::mine() {
        Mine::Cache(cache) => cache.id(),
        Mine::Shared => COMMON,
        Mine::Late(_) | Mine::Hardened(_) | Mine::Nothing => return false,
    };
    entry.owner() == mine && density::is_sparse(mine, unit, class)
}

/// Allocates as `malloc` does, but where a moved block should lie: in a free slot of a slab that is not worth
/// being emptied. Where there is none, and for blocks over 32 KiB, it is `malloc`.
///
/// Takes longer than `malloc`: up to 64 slabs are looked at. Where [`should_move`] was not asked lately, it is `malloc`. A heap
/// profile takes a block that is moved for the one that it was, but for those that are `malloc`'s. Returns null, with `errno` set, if there is no memory.
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
        let block = match start::mine() {
            Mine::Cache(cache) => {
                let _order = cache.enter();
                cache.alloc_dense(class)
            }
            Mine::Shared => central::alloc_dense(class),
            Mine::Late(_) | Mine::Hardened(_) | Mine::Nothing => None,
        };
        if let Some(block) = block {
            return block;
        }
    }
    fast::malloc(size)
}

/// Gives a block back as `free` does, but to its slab at once, and not to a list of the thread's.
///
/// Blocks that belong to another thread's cache go where `free` sends them.
///
/// # Safety
///
/// As [`free`](fn@super::free): the block is of this heap, in use, and used no more.
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
        match start::mine() {
            Mine::Cache(cache) if cache.id() == entry.owner() => {
                let _order = cache.enter();
                // SAFETY: the caller gives the block of this class away, which it uses no more.
                if unsafe { cache.put_if_mine(class, block.cast()) } {
                    return;
                }
            }
            // SAFETY: the caller gives the block away, which lies in a common slab of this class.
            _ if entry.owner() == COMMON && unsafe { central::put(class, block.cast()) } => return,
            _ => {}
        }
    }
    // SAFETY: as the caller promises.
    unsafe { fast::free(block) };
}
