//! A block from the raced allocator: its size, and a stamp at both its ends.
//!
//! ```text
//!   <- 8 bytes ->                              <- 8 bytes ->
//!   +------------+----------------------------+------------+
//!   |   stamp    |  filled, if at most 256 B  |   !stamp   |
//!   +------------+----------------------------+------------+
//! ```
//! The stamp is written when the block is made and read when it is freed. It is part of the
//! workload's checksum. So the checksum differs if an allocator hands out memory twice. Large
//! blocks are written at their ends, and in every page by [`Block::touch_pages`].

use super::{allocate, allocate_aligned, allocate_zeroed, release};
use std::hint::black_box;
use std::ptr::NonNull;

/// Blocks up to this size are written whole.
const SMALL: usize = 256;

/// The distance between two writes of [`Block::touch_pages`]: the smallest page size.
const PAGE: usize = 4096;

const WORD: usize = size_of::<u64>();

/// A block of at least eight bytes.
pub(crate) struct Block {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is owned memory, which any thread may use and free.
unsafe impl Send for Block {}

impl Block {
    pub(crate) fn new(size: usize, stamp: u64) -> Self {
        Self { start: allocate(size), size }.stamped(stamp)
    }

    /// Makes a block by `calloc`. Its middle word, which should be zero, is part of the stamp.
    pub(crate) fn zeroed(size: usize, stamp: u64) -> Self {
        let block = Self { start: allocate_zeroed(size), size };
        let middle = block.read(size / 2 - WORD / 2);
        block.stamped(stamp ^ middle)
    }

    /// Makes a block by `aligned_alloc`. Its address modulo the alignment is part of the stamp.
    pub(crate) fn aligned(alignment: usize, size: usize, stamp: u64) -> Self {
        let size = size.next_multiple_of(alignment);
        let block = Self { start: allocate_aligned(alignment, size), size };
        let remainder = block.start.addr().get() % alignment;
        block.stamped(stamp ^ remainder as u64)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Writes a word into every page, like a program that uses its buffer.
    pub(crate) fn touch_pages(&mut self) {
        self.touch_pages_to(self.size);
    }

    pub(crate) fn touch_pages_to(&mut self, bytes: usize) {
        let mut at = PAGE;
        while at + 2 * WORD < bytes.min(self.size) {
            self.write(at, at as u64);
            at += PAGE;
        }
    }

    /// Increments the first word `times` times, each time in memory.
    pub(crate) fn count_up(&mut self, times: usize) {
        for _ in 0..times {
            let word = self.read(0).wrapping_add(1);
            self.write(0, word);
            black_box(&mut *self);
        }
    }

    /// Returns a combination of both ends: the same number for the same stamp and size.
    pub(crate) fn read_stamp(&self) -> u64 {
        let last = self.read(self.size - WORD);
        self.read(0).wrapping_mul(3).wrapping_add(last).wrapping_add(self.size as u64)
    }

    /// Frees the block. Returns the combination of its ends.
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
        // SAFETY: the assertion above checked that the word lies within the block.
        let word = unsafe { self.start.add(at) };
        // SAFETY: the word is within the block, which is ours. Callers read the ends, which
        // `stamped` wrote, or memory that calloc zeroed.
        unsafe { word.cast::<u64>().read_unaligned() }
    }

    fn write(&mut self, at: usize, value: u64) {
        assert!(at + WORD <= self.size);
        // SAFETY: the assertion above checked that the word lies within the block.
        let word = unsafe { self.start.add(at) };
        // SAFETY: the word is within the block, which is ours alone.
        unsafe { word.cast::<u64>().write_unaligned(value) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from this module's parent, and is not used after this.
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
