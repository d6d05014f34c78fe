//! A block from the raced allocator: its size, and a stamp at both its ends.
//!
//! ```text
//!   <- 8 bytes ->                              <- 8 bytes ->
//!   +------------+----------------------------+------------+
//!   |   stamp    |  filled, if at most 256 B  |   !stamp   |
//!   +------------+----------------------------+------------+
//! ```
//! The stamp is written when the block is made and read when it is given back:
//! a real program writes what it asks for, and reads it. What was read flows
//! into the workload's checksum, so an allocator that hands out memory twice is
//! found out. Small blocks are written whole, as programs do; large ones at
//! their ends, and at every page by [`Block::touch_pages`].

use super::{allocate, allocate_aligned, allocate_zeroed, release};
use std::hint::black_box;
use std::ptr::NonNull;

/// Blocks to this size are written whole.
const SMALL: usize = 256;

/// How far apart [`Block::touch_pages`] writes: the smallest page there is.
const PAGE: usize = 4096;

const WORD: usize = size_of::<u64>();

/// A block of at least eight bytes.
pub(crate) struct Block {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is owned memory without ties to the thread that made it.
unsafe impl Send for Block {}

impl Block {
    /// A block by `malloc`.
    pub(crate) fn new(size: usize, stamp: u64) -> Self {
        Self { start: allocate(size), size }.stamped(stamp)
    }

    /// A block by `calloc`, whose middle word flows into the stamp: it should
    /// be nought.
    pub(crate) fn zeroed(size: usize, stamp: u64) -> Self {
        let block = Self { start: allocate_zeroed(size), size };
        let middle = block.read(size / 2 - WORD / 2);
        block.stamped(stamp ^ middle)
    }

    /// A block by `aligned_alloc`, whose alignment flows into the stamp: it
    /// should leave no remainder.
    pub(crate) fn aligned(alignment: usize, size: usize, stamp: u64) -> Self {
        let size = size.next_multiple_of(alignment);
        let block = Self { start: allocate_aligned(alignment, size), size };
        let remainder = block.start.addr().get() % alignment;
        block.stamped(stamp ^ remainder as u64)
    }

    /// How many bytes were asked for.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Writes a word into every page, as a program does that uses its buffer.
    pub(crate) fn touch_pages(&mut self) {
        self.touch_pages_to(self.size);
    }

    /// The same for the first `bytes` only.
    pub(crate) fn touch_pages_to(&mut self, bytes: usize) {
        let mut at = PAGE;
        while at + 2 * WORD < bytes.min(self.size) {
            self.write(at, at as u64);
            at += PAGE;
        }
    }

    /// Counts the first word up, `times` over, each time through memory.
    pub(crate) fn count_up(&mut self, times: usize) {
        for _ in 0..times {
            let word = self.read(0).wrapping_add(1);
            self.write(0, word);
            black_box(&mut *self);
        }
    }

    /// What the ends hold: the same number for the same stamp and size.
    pub(crate) fn read_stamp(&self) -> u64 {
        let last = self.read(self.size - WORD);
        self.read(0).wrapping_mul(3).wrapping_add(last).wrapping_add(self.size as u64)
    }

    /// Gives the block back; answers what its ends held.
    pub(crate) fn release(self) -> u64 {
        self.read_stamp()
    }

    fn stamped(mut self, stamp: u64) -> Self {
        assert!(self.size >= WORD, "a block holds its stamp");
        if self.size <= SMALL {
            // SAFETY: the block is `size` bytes long and ours alone.
            unsafe { self.start.write_bytes(stamp as u8, self.size) }
        }
        self.write(self.size - WORD, !stamp);
        self.write(0, stamp);
        self
    }

    fn read(&self, at: usize) -> u64 {
        assert!(at + WORD <= self.size);
        // SAFETY: just asked.
        let word = unsafe { self.start.add(at) };
        // SAFETY: within the block, which is ours. Callers read the ends, which
        // `stamped` wrote, or memory that calloc made.
        unsafe { word.cast::<u64>().read_unaligned() }
    }

    fn write(&mut self, at: usize, value: u64) {
        assert!(at + WORD <= self.size);
        // SAFETY: just asked.
        let word = unsafe { self.start.add(at) };
        // SAFETY: within the block, which is ours alone.
        unsafe { word.cast::<u64>().write_unaligned(value) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from this module's parent, and dies with self.
        unsafe { release(self.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_make_a_block_give_the_same_stamp() {
        for size in [64, 256, 1024, 1 << 20] {
            let expected = Block::new(size, 7).release();
            assert_eq!(Block::zeroed(size, 7).release(), expected);
            assert_eq!(Block::aligned(64, size, 7).release(), expected);
            assert_ne!(Block::new(size, 8).release(), expected);
        }
    }

    #[test]
    fn a_stamp_survives_what_the_workloads_do_between() {
        let mut block = Block::new(100_000, 5);
        let stamp = block.read_stamp();
        block.touch_pages();
        assert_eq!(block.read_stamp(), stamp);
        block.count_up(10);
        assert_eq!(block.release(), stamp + 30);
    }

    #[test]
    fn the_smallest_block_is_a_word() {
        let block = Block::new(WORD, 5);
        assert_eq!(block.size(), WORD);
        assert_eq!(block.release(), 5 * 3 + 5 + WORD as u64);
    }
}
