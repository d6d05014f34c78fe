//! Resizing a block: in place, by moving its pages, or by copying it to a new block.
//!
//! ```text
//!   realloc --> a slot of the thread's own cache     stays, or malloc, copy, free      here
//!     '-------> else                                 table: resize
//!                 |- a slot that still fits          stays
//!                 |- a large block                   in place, else its pages move (`large`)
//!                 |- another allocator's, guarded    malloc, copy, free
//!                 '- else                            malloc, copy, free
//! ```
//!
//! Called by the C layer, the adapters, and the tables of `start` and `modes` ([`resize`]).

use core::ptr;

use super::foreign::{self, Found};
use super::words;
use super::{fast, shared};
use crate::cache::large;
use crate::cache::{Cache, Hot, Use, counters};
use crate::drawn;
use crate::libc_block;
use crate::misuse::{self, Call};
use crate::os;
use crate::request::{ALIGNED, MALLOC, NEW, NEW_ARRAY, Origin, RUST, Return};
use crate::size_class::{self, MIN_ALIGN, SLAB_MAX};
use crate::sync;
use crate::ticks;

/// Only slots of at least this size get room to grow.
const GROWS: usize = 256;

/// Changes the size of a block, and moves the block if necessary.
///
/// The contents up to the smaller size stay. A null block gives a new block. Returns null if there
/// is no memory: `errno` is `ENOMEM`, and the block is unchanged. A block that still fits its slot
/// stays there, unless it would use at most three eighths of a slot of over 32 bytes. A large block
/// grows in place if the address space behind it is free. Otherwise the kernel moves its pages, if
/// it can.
///
/// # Safety
///
/// The block is in use. Afterwards only the returned block is.
///
/// ```
/// use heapwright::heap;
/// let block = heap::malloc(16);
/// // SAFETY: the block is ours; the new one replaces it.
/// let block = unsafe { heap::realloc(block, 100_000) };
/// // SAFETY: the block is ours, freed once.
/// unsafe { heap::free(block) };
/// ```
pub unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    unsafe { change::<MALLOC>(block, size, None, 1) }
}

/// [`realloc`] for a caller that knows the size and alignment of its block, which is not null. The
/// new block has the same alignment.
///
/// # Safety
///
/// As [`realloc`]. `old` and `align` are the values that the block was allocated with.
///
/// ```
/// use heapwright::heap::{self, RUST};
/// let block = heap::malloc_aligned_for::<RUST>(16, 64);
/// // SAFETY: the block is ours, and was made so; the new one replaces it.
/// let block = unsafe { heap::realloc_sized_from::<RUST>(block, 16, 64, 5000) };
/// assert!(block as usize % 64 == 0);
/// // SAFETY: the block is ours, freed once.
/// unsafe { heap::free_sized_aligned_from::<RUST>(block, 5000, 64) };
/// ```
pub unsafe fn realloc_sized_from<const FROM: u8>(
    block: *mut u8,
    old: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    unsafe { change::<FROM>(block, size, Some(old), align) }
}

/// If `known` is `None`, `align` is 1.
///
/// # Safety
///
/// As [`realloc_sized_from`], if `known` is the block's size. Else as [`realloc`].
#[inline(always)]
unsafe fn change<const FROM: u8>(
    block: *mut u8,
    size: usize,
    known: Option<usize>,
    align: usize,
) -> *mut u8 {
    if block.is_null() {
        return fast::malloc_aligned_for::<FROM>(size, align);
    }
    if align <= MIN_ALIGN {
        // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
        let new = unsafe { resize_mine::<FROM>(block, size) };
        if !new.is_null() {
            return new;
        }
    }
    let align = known.is_some().then_some(align);
    let hot = words::hot();
    let what = Return::new(Call::Realloc, Origin::of::<FROM>(), known, align);
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    unsafe { (hot.serve().resize)(block, size, hot, what) }
}

/// Changes the size of a slot of the thread's own cache. Returns null if the block is no such slot,
/// if a front gets the thread's calls, or if there is no memory.
///
/// # Safety
///
/// As [`realloc`].
#[inline(always)]
unsafe fn resize_mine<const FROM: u8>(block: *mut u8, size: usize) -> *mut u8 {
    let Some(class) = fast::class_of_mine(block) else { return ptr::null_mut() };
    let have = size_class::size(class);
    if stays(have, size) {
        return block;
    }
    let new = fast::malloc_aligned_for::<FROM>(with_room(have, size), 1);
    if !new.is_null() {
        // SAFETY: both blocks have this many bytes, and no other code has the new block.
        unsafe { ptr::copy_nonoverlapping(block, new, have.min(size)) };
        // SAFETY: by the contract the old block is ours to free.
        unsafe { fast::free_from::<FROM>(block) };
    }
    new
}

/// Changes the size of a block of the fast heap or of another allocator. The block is not null.
/// Returns null, with `errno` set, if there is no memory. Then the block is unchanged.
///
/// # Safety
///
/// As [`realloc`]. `what` describes the block truly.
#[inline(never)]
pub(super) unsafe fn resize(block: *mut u8, size: usize, _hot: &Hot, what: Return) -> *mut u8 {
    let align = what.align.unwrap_or(1);
    let (old, new_size, is_foreign) = match (what.size, align <= MIN_ALIGN) {
        // Only a new block is sure to be aligned.
        (Some(old), false) => (old, size, false),
        _ => match foreign::find(Call::Realloc, block.addr()) {
            Found::Slot { class, owner } => {
                let have = size_class::size(class);
                if stays(have, size) {
                    drawn::note_resized(owner, block, size);
                    return block;
                }
                let is_mine = words::cache().is_some_and(|cache| cache.id() == owner);
                (have, if is_mine { with_room(have, size) } else { size }, false)
            }
            Found::Large { unit } => {
                if size > isize::MAX as usize {
                    os::set_errno(os::ENOMEM);
                    return ptr::null_mut();
                }
                let have = large::usable(unit);
                if (size > SLAB_MAX || stays(have, size))
                    && let Some(block) = resize_large(unit, block, size)
                {
                    return block;
                }
                (have, size, false)
            }
            Found::Foreign => match size_to_copy(block, size) {
                Ok(have) => (have, size, true),
                Err(new) => return new,
            },
        },
    };
    // (The new block is of the same kind, because a later free checks the kind.)
    let new = match what.origin {
        Origin::Aligned => fast::malloc_aligned_for::<ALIGNED>(new_size, align),
        Origin::New => fast::malloc_aligned_for::<NEW>(new_size, align),
        Origin::NewArray => fast::malloc_aligned_for::<NEW_ARRAY>(new_size, align),
        Origin::Rust => fast::malloc_aligned_for::<RUST>(new_size, align),
        _ => fast::malloc_aligned_for::<MALLOC>(new_size, align),
    };
    if !new.is_null() {
        // SAFETY: both blocks have this many bytes, and no other code has the new block.
        unsafe { ptr::copy_nonoverlapping(block, new, old.min(size)) };
        let (hot, what) = (words::hot(), Return::new(Call::Free, what.origin, None, None));
        if is_foreign {
            // SAFETY: by the contract the old block is this call's to give away.
            unsafe { foreign::give_back(block, what) };
        } else {
            // SAFETY: by the contract the old block is this call's to give away.
            unsafe { hot.serve().take_back(block, hot, what) };
        }
    }
    new
}

/// The size to copy from a block outside the fast heap. `Err` has the result if the block's
/// allocator has resized it.
#[cold]
fn size_to_copy(block: *mut u8, size: usize) -> Result<usize, *mut u8> {
    let address = block.addr();
    if foreign::is_guarded(Call::Realloc, address) {
        return Ok(drawn::size_of_guarded(Call::Realloc, block));
    }
    if let Some(peer) = foreign::peer() {
        // SAFETY: the block comes from the peer, and the caller gives it to be resized.
        return Err(unsafe { (peer.realloc)(block, size.max(1)) });
    }
    // The C library's allocator makes no new blocks, so the new block will be ours.
    libc_block::usable_size(address).ok_or_else(|| misuse::foreign(Call::Realloc, address))
}

/// The size to allocate for a slot of `have` bytes. A slot from [`GROWS`] to half of [`SLAB_MAX`]
/// that grows by less than a quarter gets a quarter more: it will probably grow again.
#[inline(always)]
fn with_room(have: usize, size: usize) -> usize {
    let more = have + have / 4;
    if (GROWS..=SLAB_MAX / 2).contains(&have) && (have + 1..more).contains(&size) {
        more
    } else {
        size
    }
}

/// Whether a block stays in its slot of `have` bytes: down to three eighths of the slot, or in a
/// slot of up to 32 bytes.
#[inline(always)]
fn stays(have: usize, size: usize) -> bool {
    size <= have && (size > have / 8 * 3 || have <= 32)
}

/// Resizes a large block without copying its bytes, if possible.
fn resize_large(unit: usize, block: *mut u8, size: usize) -> Option<*mut u8> {
    let before = large::usable(unit);
    if shared::is_on() && sync::is_interrupted() {
        return (size <= before).then_some(block);
    }
    if let Some(heap) = large::heap_of(unit) {
        return resize_in_heap(unit, block, size, heap);
    }
    let mut after = unit;
    let mut moved = block;
    if !large::resize_in_place(unit, size, release_kept) {
        let new = large::move_to_grow(unit, size)?;
        (after, moved) = (new.unit, new.block);
    }
    counters::resized(large::usable(after) as i64 - before as i64);
    if drawn::is_sampling() && size > before {
        drawn::note_grown(after, moved, size, size - before, words::cache());
    }
    Some(moved)
}

/// [`resize_large`] for a block of a first-class heap, or of the samples' heap.
#[cold]
fn resize_in_heap(unit: usize, block: *mut u8, size: usize, heap: &Cache) -> Option<*mut u8> {
    let before = large::usable(unit);
    let is_sample = heap.owned_by() == Use::Samples;
    if is_sample && sync::is_interrupted() {
        return (size <= before).then_some(block);
    }
    // The sample is taken out before the block's memory can become another block's.
    let sample = drawn::take(block);
    let order = heap.lock.lock();
    let moved = if large::resize_in_place(unit, size, release_kept) {
        Some((unit, block))
    } else if is_sample {
        large::move_in_heap(unit, size, heap).map(|new| (new.unit, new.block))
    } else {
        None
    };
    drop(order);
    let at = moved.map_or(block, |(_, block)| block);
    drawn::put_back(sample, at, moved.map(|_| size));
    // The heap may have grown while its lock was held.
    ticks::catch_up();
    let (after, moved) = moved?;
    counters::resized(large::usable(after) as i64 - before as i64);
    Some(moved)
}

/// Returns the runs in the calling thread's stash to the chunk.
fn release_kept() {
    if let Some(cache) = words::cache() {
        let _order = cache.enter();
        cache.stash.release();
    } else if shared::is_on()
        && let Some(held) = shared::acquire()
    {
        held.stash.release();
    }
}
