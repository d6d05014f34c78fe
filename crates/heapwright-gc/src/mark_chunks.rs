//! Mark chunks: where the memory of the mark stack comes from.
//!
//! ```text
//!   run of side memory   | link | chunk | chunk | ... | chunk |      64 KiB, cut into chunks of 8
//!                                    |
//!        the gang's empty chunks <---+---> reserve: one, for the time when there is no memory
//! ```
//!
//! Chunks (see `gang`) hold what is still to be looked at, and what `bag` puts down. An empty one goes
//! back to the gang's list; all memory goes back when the heap ends.
//!
//! Called by `tracer` and `bag`.

use core::ptr;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::os;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, Ordering};

#[cfg(test)]
use super::cell::Num;
use super::gang::{Chunk, Gang};

/// The memory of one heap's chunks. Zero has none.
pub(super) struct MarkChunks {
    /// The chunk that is there when there is no memory.
    reserve: AtomicPtr<Chunk>,
    runs: Lock<Runs>,
    /// A test's: there is no memory.
    #[cfg(test)]
    pub(super) starved: Num,
}

/// Runs that chunks were cut from, linked through their first words.
struct Runs(*mut u8);

// SAFETY: memory that is the heap's, under its lock.
unsafe impl Send for Runs {}

impl MarkChunks {
    /// Makes the reserve. False: there is no memory.
    pub(super) fn begin(&self, gang: &Gang) -> bool {
        let reserve = self.make(gang);
        self.reserve.store(reserve.unwrap_or(ptr::null_mut()), Ordering::Relaxed);
        reserve.is_some()
    }

    /// An empty chunk.
    pub(super) fn take(&self, gang: &Gang) -> Option<*mut Chunk> {
        #[cfg(test)]
        if self.starved.get() != 0 {
            return None;
        }
        gang.take_empty().or_else(|| self.make(gang))
    }

    /// A chunk for a tracer that has none, when there is no memory: the reserve, or one of the
    /// gang's, with what is in it. While the world stands still: then a tracer with a chunk
    /// comes to its end, and gives it back before it waits.
    pub(super) fn last_resort(&self, gang: &Gang) -> *mut Chunk {
        loop {
            let chunk = self.reserve.swap(ptr::null_mut(), Ordering::AcqRel);
            if !chunk.is_null() {
                return chunk;
            }
            if let Some(chunk) = gang.take_empty().or_else(|| gang.take_now()) {
                return chunk;
            }
            os::yield_now();
        }
    }

    /// Cuts side memory into chunks. The first of them is the caller's.
    #[cold]
    fn make(&self, gang: &Gang) -> Option<*mut Chunk> {
        let side = Side::take(UNIT)?;
        let mut runs = self.runs.lock();
        // SAFETY: fresh memory, whose first chunk's place is the link's alone.
        unsafe { side.at().cast::<*mut u8>().write(runs.0) };
        runs.0 = side.at();
        drop(runs);
        let chunks: *mut Chunk = side.at().cast();
        let count = UNIT / size_of::<Chunk>();
        for n in 2..count {
            // SAFETY: fresh memory that nobody else knows.
            unsafe { gang.give_empty(chunks.wrapping_add(n)) };
        }
        Some(chunks.wrapping_add(1))
    }

    /// Gives all memory back. No chunk is in use any more.
    pub(super) fn end(&self) {
        let mut runs = self.runs.lock();
        while !runs.0.is_null() {
            // SAFETY: the first word of a run leads to the next one.
            let next = unsafe { runs.0.cast::<*mut u8>().read() };
            Side::give_at(runs.0);
            runs.0 = next;
        }
    }

    /// Holds the lock across a fork.
    pub(super) fn before_fork(&self) {
        self.runs.acquire();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`MarkChunks::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.runs.release() };
    }
}
