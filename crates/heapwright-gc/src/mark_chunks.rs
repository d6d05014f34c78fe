//! Mark chunks: where the memory of the mark stack comes from.
//!
//! ```text
//!   run of side memory   | link | chunk | chunk | ... | chunk |      64 KiB, cut into chunks of 8
//!                                    |
//!        the gang's empty chunks <---+---> reserve: one, for use when there is no memory
//! ```
//!
//! Chunks (see `gang`) hold items that are still to be marked, and the contents of bags. When
//! marking ends, wholly empty runs go back, except a few. Bytes beyond 256 KiB count against the
//! heap's limit. Called by `marking`, for `tracer` and `bag`.

use core::ptr;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::os;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, Ordering};

use super::cell::Num;
use super::gang::{Chunk, Chunks, Gang};
use super::locks::With;

pub(super) struct MarkChunks {
    /// The chunk for use when there is no memory.
    reserve: AtomicPtr<Chunk>,
    runs: Lock<Runs>,
    /// Bytes of all runs. `peak`: the most bytes that runs ever had.
    bytes: Num,
    peak: Num,
    /// For tests. 1: as if there were no chunk and no memory. 2: as if there were no memory.
    #[cfg(test)]
    pub(super) starved: Num,
}

struct Runs(*mut Run);

/// The head of a run, in the place of its first chunk.
struct Run {
    next: *mut Run,
    /// The number of its empty chunks, during a count.
    empty: usize,
}

const CHUNKS: usize = UNIT / size_of::<Chunk>() - 1;
/// Bytes of runs that are always kept.
const KEPT: usize = 4 * UNIT;

// SAFETY: runs are memory of the heap, and are used under the lock.
unsafe impl Send for Runs {}

impl MarkChunks {
    pub(super) fn begin(&self, gang: &Gang) -> bool {
        let reserve = self.make(gang);
        self.reserve.store(reserve.unwrap_or(ptr::null_mut()), Ordering::Relaxed);
        reserve.is_some()
    }

    pub(super) fn take(&self, gang: &Gang) -> Option<*mut Chunk> {
        #[cfg(test)]
        if self.starved.get() == 1 {
            return None;
        }
        let chunk = self.take_any(gang)?;
        // The reserve is refilled first: no bag may take the last chunk.
        let refill = || {
            self.reserve.compare_exchange(
                ptr::null_mut(),
                chunk,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
        };
        if self.reserve.load(Ordering::Relaxed).is_null() && refill().is_ok() {
            return self.take_any(gang);
        }
        Some(chunk)
    }

    fn take_any(&self, gang: &Gang) -> Option<*mut Chunk> {
        gang.take_empty().or_else(|| self.make(gang))
    }

    /// Returns a chunk for a tracer that has none, when there is no memory: the reserve, an empty
    /// chunk, or a chunk of the gang with its items. The world must be stopped. Then every tracer
    /// with a chunk finishes, and gives the chunk back before it waits.
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

    #[cold]
    fn make(&self, gang: &Gang) -> Option<*mut Chunk> {
        #[cfg(test)]
        if self.starved.get() != 0 {
            return None;
        }
        let side = Side::take(UNIT)?;
        let run: *mut Run = side.at().cast();
        let mut runs = self.runs.lock();
        // SAFETY: fresh memory, whose first chunk's place is the run's alone.
        unsafe { run.write(Run { next: runs.0, empty: 0 }) };
        runs.0 = run;
        self.bytes.add(UNIT);
        self.peak.set(self.peak.get().max(self.bytes.get()));
        drop(runs);
        let chunks: *mut Chunk = side.at().cast();
        for n in 2..=CHUNKS {
            // SAFETY: fresh memory that nobody else knows.
            unsafe { gang.give_empty(chunks.wrapping_add(n)) };
        }
        Some(chunks.wrapping_add(1))
    }

    pub(super) fn bytes(&self) -> [usize; 2] {
        [self.bytes.get(), self.peak.get()]
    }

    /// Returns the bytes of runs beyond those that every heap may keep.
    pub(super) fn beyond_a_few(&self) -> usize {
        self.bytes.get().saturating_sub(KEPT)
    }

    /// Gives back runs whose chunks are all empty. Keeps `KEPT` bytes, or 1/256 of `heap` bytes if
    /// that is more. Takes time linear in the number of chunks. No thread may mark.
    pub(super) fn trim(&self, gang: &Gang, heap: usize) {
        let most = KEPT.max(heap / 256);
        if self.bytes.get() <= most {
            return;
        }
        fn run_of(chunk: *mut Chunk) -> *mut Run {
            chunk.cast::<u8>().map_addr(|at| at & !(UNIT - 1)).cast()
        }
        let mut runs = self.runs.lock();
        let mut chunks = Chunks::none();
        while let Some(chunk) = gang.take_empty() {
            // SAFETY: the chunk was cut from this run, which is used under the lock.
            unsafe { (*run_of(chunk)).empty += 1 };
            // SAFETY: the chunk was taken just now.
            unsafe { chunks.push(chunk) };
        }
        // Unlinks the runs that go, with an impossible count. All their chunks are in `chunks`.
        let mut link = &raw mut runs.0;
        // SAFETY: the link is in the list, which is used under the lock.
        while let run = unsafe { link.read() }
            && !run.is_null()
        {
            // SAFETY: the run is in the list, which is used under the lock.
            let Run { next, empty } = unsafe { run.read() };
            if empty == CHUNKS && self.bytes.get() > most {
                // SAFETY: the link is in the list, which is used under the lock.
                unsafe { link.write(next) };
                // SAFETY: a run that is in no list any more.
                unsafe { (*run).empty = usize::MAX };
                self.bytes.sub(UNIT);
            } else {
                // SAFETY: the run is in the list, which is used under the lock.
                unsafe { (*run).empty = 0 };
                // SAFETY: the run is in the list, which is used under the lock. Nothing is read.
                link = unsafe { &raw mut (*run).next };
            }
        }
        // Keeps the other chunks. The first chunk of each run that goes stands for the run.
        let mut gone = Chunks::none();
        while let Some(chunk) = chunks.pop() {
            // SAFETY: the chunk was cut from this run, which exists until it is given back below.
            if unsafe { (*run_of(chunk)).empty } == 0 {
                // SAFETY: the chunk was taken above.
                unsafe { gang.give_empty(chunk) };
            } else if run_of(chunk).addr() + size_of::<Chunk>() == chunk.addr() {
                // SAFETY: the chunk was taken above, and is the first of its run.
                unsafe { gone.push(chunk) };
            }
        }
        while let Some(chunk) = gone.pop() {
            Side::give_at(run_of(chunk).cast());
        }
    }

    pub(super) fn end(&self) {
        let mut runs = self.runs.lock();
        while !runs.0.is_null() {
            // SAFETY: a run leads to the next one.
            let next = unsafe { (*runs.0).next };
            Side::give_at(runs.0.cast());
            runs.0 = next;
        }
        self.bytes.set(0);
        self.peak.set(0);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.runs);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::super::runtime::Runtime;
    use super::super::tests::ground::Ground;

    #[test]
    fn the_reserve_goes_to_a_last_resort_alone() {
        let marking = &Ground::new(Runtime::new()).trace.marking;
        marking.chunks.starved.set(2);
        let taken: Vec<_> = core::iter::from_fn(|| marking.take_chunk()).collect();
        for _ in 0..3 {
            let last = marking.last_resort();
            marking.give_back(last);
            assert!(marking.take_chunk().is_none(), "the reserve is refilled first");
        }
        assert!(!taken.is_empty());
        taken.into_iter().for_each(|chunk| marking.give_back(chunk));
        assert!(marking.take_chunk().is_some());
    }
}
