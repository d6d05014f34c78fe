//! `malloc` and `free` through a CPU's arrays, in Rust around the two sequences: aarch64, where no
//! golden count is kept, and machines without sequences, where there is no gate to call these with.

use super::{aborted_free, aborted_malloc, empty, full, odd};
use crate::address_map::CLASS_STEP;
use crate::cache::Residue;
use crate::cache::arrays::{Gate, Put, Taken};
use crate::cache::hot::BIASED_TO_CPU;
use crate::size_class::{self, UNIT};

/// A block for `size` bytes from the list at `offset`.
pub(crate) fn malloc(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    match gate.take(offset / CLASS_STEP) {
        Taken::Block(block) => block.cast(),
        Taken::Empty => empty(size, gate, offset),
        Taken::Aborted => aborted_malloc(size, gate, offset),
    }
}

/// Takes a block of the common owner's back; `rest` is what is left of its entry.
///
/// # Safety
///
/// As `heap::free`.
pub(crate) unsafe fn free(block: *mut u8, gate: &Gate, residue: usize) {
    // SAFETY: by the contract it is what is left of an entry.
    let left = unsafe { Residue::of(residue) };
    let class = (residue - BIASED_TO_CPU) / CLASS_STEP;
    let offset = (block.addr() & (UNIT - 1)) as u32;
    if !size_class::is_slot_start(offset, size_class::reciprocal(class)) {
        // SAFETY: the caller gives the block away, whatever begins there.
        return unsafe { odd(block, gate, left) };
    }
    // SAFETY: a slot begins at the block, which is the caller's to give away, of a common slab.
    match unsafe { gate.put(class, block.cast()) } {
        Put::Done => {}
        // SAFETY: the caller gives away the block of the common owner's, which no array has.
        Put::Full => unsafe { full(block, gate, left) },
        // SAFETY: the caller gives away the block of the common owner's, which no array has.
        Put::Aborted => unsafe { aborted_free(block, gate, left) },
    }
}
