//! Another size for a block: in place, by moving pages, or in a new block.
//!
//! ```text
//!   realloc --> traced, counted? in two halves (`trace`, `tallies`)
//!     |-------> the debug heap's block         the debug heap
//!     |-------> another allocator's            foreign
//!     |-------> a slot that still fits         stays
//!     |-------> a large block                  in place, else its pages move (`large`)
//!     '-------> else                           malloc, copy, free
//! ```
//!
//! Called by the C layer and the adapters.

use super::door::{Found, find};
use super::guards;
use super::{fast, foreign, large, own_word, sampling, shared, tallies};
use crate::cache::{Cache, counters};
use crate::hardened;
use crate::hooks;
use crate::misuse::Call;
use crate::options;
use crate::os;
use crate::request::{MALLOC, Origin, Return};
use crate::size_class::{self, MIN_ALIGN, SLAB_MAX};
use crate::sync;
use crate::ticks;
use crate::trace;

/// Blocks from so many bytes on get room to grow.
const GROWS: usize = 256;

/// Changes the size of a block, moving it where it must.
///
/// The contents up to the smaller size stay. A null block is a new one. Null:
/// there is no memory (`errno` is `ENOMEM`), and the block is unchanged. A block
/// stays where it is if it still fits and would not waste more than half of itself; large
/// blocks grow in place where the address space behind them is free, and the
/// kernel moves their pages where it is not.
///
/// # Safety
///
/// The block is in use; afterwards only the returned one is.
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
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
    // promises.
    unsafe { resize::<MALLOC>(block, size, None, 1) }
}

/// [`realloc`] for a caller that knows the size and alignment of its block, which
/// is not null; the new one has the same alignment.
///
/// # Safety
///
/// As [`realloc`]; `old` and `align` are those the block was allocated with.
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
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
    // promises.
    unsafe { resize::<FROM>(block, size, Some(old), align) }
}

/// What they share. `align` is 1 where the caller does not know the block.
///
/// # Safety
///
/// As theirs.
#[inline(always)]
unsafe fn resize<const FROM: u8>(
    block: *mut u8,
    size: usize,
    known: Option<usize>,
    align: usize,
) -> *mut u8 {
    if block.is_null() {
        return super::malloc_aligned_for::<FROM>(size, align);
    }
    if align <= MIN_ALIGN {
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        let new = unsafe { resize_mine::<FROM>(block, size) };
        if !new.is_null() {
            return new;
        }
    }
    if trace::realloc_begins(block) {
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        let new = unsafe { resize_heard::<FROM>(block, size, known, align) };
        trace::realloc_ends(new, size);
        return new;
    }
    if tallies::realloc_begins(block) {
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        let new = unsafe { resize_heard::<FROM>(block, size, known, align) };
        tallies::realloc_ends(block, new, size);
        return new;
    }
    if hooks::is_debugging() {
        let align = known.is_some().then_some(align);
        let what = Return::new(Call::Realloc, Origin::of::<FROM>(), known, align);
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        if let Some(new) = unsafe { hooks::realloc(block, size, what) } {
            if new.is_null() {
                os::set_errno(os::ENOMEM);
            }
            return new;
        }
    }
    if hardened::is_on() {
        let align = known.is_some().then_some(align);
        let what = Return::new(Call::Realloc, Origin::of::<FROM>(), known, align);
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        if let Some(new) = unsafe { hardened::realloc(own_word::hardened(), block, size, what) } {
            if new.is_null() {
                os::set_errno(os::ENOMEM);
            }
            return new;
        }
        guards::compare(block.addr(), what);
    }
    let old = match (known, align <= MIN_ALIGN) {
        // Only a new block is sure to be aligned.
        (Some(old), false) => old,
        _ => match find(Call::Realloc, block.addr()) {
            // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
            // promises.
            Found::Foreign => return unsafe { foreign::realloc::<FROM>(block, size, align) },
            Found::Slot { class, owner } => {
                let have = size_class::size(class);
                if stays(have, size) {
                    sampling::note_resized(owner, block, size);
                    return block;
                }
                have
            }
            Found::Large { unit } => {
                if size > isize::MAX as usize {
                    os::set_errno(os::ENOMEM);
                    return core::ptr::null_mut();
                }
                let have = large::usable(unit);
                if (size > SLAB_MAX || stays(have, size))
                    && let Some(block) = resize_large(unit, block, size)
                {
                    return block;
                }
                have
            }
        },
    };
    let new = super::malloc_aligned_for::<FROM>(size, align);
    if !new.is_null() {
        // SAFETY: both blocks have as many bytes, and the new one is ours alone.
        unsafe { core::ptr::copy_nonoverlapping(block, new, old.min(size)) };
        // SAFETY: by the contract the old block is ours to free.
        unsafe { super::free_from::<FROM>(block) };
    }
    new
}

/// [`resize`] of a slot of the thread's own cache. Null: it is none, each call is seen to, or there
/// is no memory.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn resize_mine<const FROM: u8>(block: *mut u8, size: usize) -> *mut u8 {
    let Some(class) = fast::class_of_mine(block) else { return core::ptr::null_mut() };
    let have = size_class::size(class);
    if stays(have, size) {
        return block;
    }
    let new = super::malloc_aligned_for::<FROM>(with_room(have, size), 1);
    if !new.is_null() {
        // SAFETY: both blocks have as many bytes, and the new one is ours alone.
        unsafe { core::ptr::copy_nonoverlapping(block, new, have.min(size)) };
        // SAFETY: by the contract the old block is ours to free.
        unsafe { super::free_from::<FROM>(block) };
    }
    new
}

/// What to ask for where a block in a slot of `have` bytes becomes one of `size`: a quarter more than it
/// had where it grows by less, for then it will probably go on growing.
#[inline(always)]
fn with_room(have: usize, size: usize) -> usize {
    let more = have + have / 4;
    if (GROWS..=SLAB_MAX / 2).contains(&have) && (have + 1..more).contains(&size) {
        more
    } else {
        size
    }
}

/// Whether a block in a slot of `have` bytes stays there when it becomes one of `size`: down to half of what
/// was asked for, which is up to a quarter less than the slot has.
#[inline(always)]
fn stays(have: usize, size: usize) -> bool {
    size <= have && (size > have / 8 * 3 || have <= 32)
}

/// [`resize`] between the two halves that are traced or counted of it.
///
/// # Safety
///
/// As there.
#[cold]
#[inline(never)]
unsafe fn resize_heard<const FROM: u8>(
    block: *mut u8,
    size: usize,
    known: Option<usize>,
    align: usize,
) -> *mut u8 {
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
    // promises.
    unsafe { resize::<FROM>(block, size, known, align) }
}

/// Resizes a large block without copying its bytes, if that can be done.
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
    if options::detailed() {
        counters::live(large::usable(after) as i64 - before as i64);
    }
    if sampling::is_on() && size > before {
        sampling::note_grown(after, moved, size, size - before);
    }
    Some(moved)
}

/// [`resize_large`] for a block of a first-class heap, or of the samples'.
#[cold]
fn resize_in_heap(unit: usize, block: *mut u8, size: usize, heap: &Cache) -> Option<*mut u8> {
    let before = large::usable(unit);
    let is_sample = sampling::is_owner(heap.id());
    if is_sample && sync::is_interrupted() {
        return (size <= before).then_some(block);
    }
    // Before its memory may be another block's.
    let sample = sampling::take(block);
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
    sampling::put_back(sample, at, moved.map(|_| size));
    // The heap may have grown while its lock was held.
    ticks::catch_up();
    let (after, moved) = moved?;
    if options::detailed() {
        counters::live(large::usable(after) as i64 - before as i64);
    }
    Some(moved)
}

/// Gives the runs back that the calling thread's cache keeps.
fn release_kept() {
    if let Some(cache) = own_word::cache() {
        let _order = cache.enter();
        cache.stash.release();
    } else if shared::is_on()
        && let Some(held) = shared::acquire()
    {
        held.stash.release();
    }
}
