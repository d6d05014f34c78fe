//! Deferred frees, and a reserve: for callers that must not wait for a lock.
//!
//! ```text
//!   a signal handler that has interrupted its thread in a slow path
//!     frees a block that no cache takes   --> deferred, until a thread takes a central chain
//!     needs a block that no cache has     <-- a reserve, which that thread fills up
//! ```
//!
//! Both are lock-free stacks (`remote`).
//!
//! Called by `central`, which drains and refills the stacks, by `outgoing`, `magazines` and
//! `large`, and by `heap`.

use core::ptr;

use crate::address_map::MAP;
use crate::remote::{Block, RemoteStack};
use crate::size_class::{self, SLAB_MAX, UNIT};

/// The deferred frees: blocks from [`defer`], and runs from [`defer_run`].
pub(super) static DEFERRED: RemoteStack = RemoteStack::new();
/// Blocks for signal handlers, of the sizes in [`RESERVED`]. There are several stacks: while a
/// handler pops from one, perhaps for long, that stack is empty for others.
pub(super) static RESERVE: [RemoteStack; 6] = [const { RemoteStack::new() }; 6];
/// The size of each stack's blocks, and their number.
pub(super) const RESERVED: [(usize, usize); 6] =
    [(1 << 10, 16), (1 << 10, 16), (1 << 10, 16), (1 << 10, 16), (SLAB_MAX, 2), (SLAB_MAX, 2)];

/// Frees a block for a caller that must not wait for a lock. (The caller may be a signal handler
/// that has interrupted the lock's holder.)
///
/// # Safety
///
/// The block is of `class`, of a common slab, and the caller gives it away.
pub(crate) unsafe fn defer(class: usize, block: *mut Block) {
    let size = size_class::size(class);
    let mut reserves = RESERVE.iter().zip(RESERVED);
    let reserve = reserves.find(|(reserve, (has, count))| *has == size && reserve.len() < *count);
    // SAFETY: one block, which the caller gives away.
    unsafe { reserve.map_or(&DEFERRED, |(reserve, _)| reserve).push(block, block, 1, size) };
}

/// [`defer`] for a run. The run's record says that it is kept.
///
/// # Safety
///
/// The run begins at `unit`, was a block a moment ago, and the caller gives it away.
pub(crate) unsafe fn defer_run(unit: usize) {
    let block: *mut Block = MAP.address_of(unit).cast();
    // SAFETY: the first words of the run, which the caller gives away.
    unsafe { DEFERRED.push(block, block, 1, UNIT) };
}

/// A block from the reserve, for a signal handler. `None` if the reserve is used up.
pub(crate) fn reserved(class: usize) -> Option<*mut Block> {
    RESERVE.iter().zip(RESERVED).find_map(|(reserve, (size, _))| {
        if size < size_class::size(class) { None } else { pop(reserve, size) }
    })
}

/// Takes one block from a stack of `size`-byte blocks: takes the stack, and puts the rest back. If
/// it took one block alone, other threads could pop that block and push it again in the meantime.
fn pop(stack: &RemoteStack, size: usize) -> Option<*mut Block> {
    let (head, _) = stack.take();
    if head.is_null() {
        return None;
    }
    // SAFETY: the chain was taken whole.
    let rest = unsafe { Block::next(head) };
    let (mut tail, mut left) = (ptr::null_mut(), 0);
    let mut block = rest;
    while !block.is_null() {
        (tail, left) = (block, left + 1);
        // SAFETY: a block of the chain, which was taken whole.
        block = unsafe { Block::next(block) };
    }
    stack.taken(left + 1, (left + 1) * size);
    if left > 0 {
        // SAFETY: the rest of the chain, linked, and in no other list.
        unsafe { stack.push(rest, tail, left, left * size) };
    }
    Some(head)
}

/// For a forked child: other threads may have been changing the stacks.
pub(crate) fn forget_after_fork() {
    DEFERRED.forget_after_fork();
    for reserve in &RESERVE {
        reserve.forget_after_fork();
    }
}
