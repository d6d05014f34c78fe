//! The state that the marking threads of one heap share.
//!
//! ```text
//!   gang       chunks to be marked, and the workers         chunks       their memory
//!   helpers    threads that only mark                   local_marks  a bitmap for a second thread
//!   counted    objects by page list, of tracers that have given their counts
//! ```
//!
//! Part of `trace`.

use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::cell::Num;
use super::gang::{Chunk, Gang};
use super::helpers::Helpers;
use super::layout::PAGE_LISTS;
use super::local_marks::LocalMarks;
use super::locks::With;
use super::mark_chunks::MarkChunks;
use super::page::Page;

pub(super) struct Marking {
    pub(super) gang: Gang,
    pub(super) helpers: Helpers,
    pub(super) local_marks: LocalMarks,
    pub(super) chunks: MarkChunks,
    /// Whether a page is to be looked through, because there was no chunk for one of its objects.
    pub(super) overflowed: AtomicU32,
    deadline: Num,
    /// Objects marked by helpers, and by detached mutators. `counted_bytes`: their bytes.
    counted: [Num; PAGE_LISTS],
    counted_bytes: Num,
    /// The work of these helpers and mutators (see `tracer`). `attempts`: the steps of this cycle
    /// that reported all roots, but did not trace all that they lead to.
    counted_work: Num,
    pub(super) attempts: Num,
}

impl Marking {
    pub(super) fn begin(&self) -> bool {
        self.chunks.begin(&self.gang)
    }

    pub(super) fn take_chunk(&self) -> Option<*mut Chunk> {
        self.chunks.take(&self.gang)
    }

    /// Takes a chunk when there is no memory: see [`MarkChunks::last_resort`].
    pub(super) fn last_resort(&self) -> *mut Chunk {
        self.chunks.last_resort(&self.gang)
    }

    pub(super) fn deadline(&self) -> u64 {
        self.deadline.get() as u64
    }

    pub(super) fn set_deadline(&self, deadline: u64) {
        self.deadline.set(deadline as usize);
    }

    /// Gives back chunks that a heap of `heap` bytes is not likely to need. No thread may mark.
    pub(super) fn trim(&self, heap: usize) {
        self.chunks.trim(&self.gang, heap);
    }

    pub(super) fn note_overflow(&self, page: &Page) {
        page.overflowed.set(1);
        self.overflowed.store(1, Ordering::Release);
    }

    /// Adds a tracer's counts, and zeroes them.
    pub(super) fn keep_counts(&self, marked: &[Num; PAGE_LISTS], bytes: usize, work: usize) {
        for (kept, count) in self.counted.iter().zip(marked) {
            if count.get() != 0 {
                kept.add_shared(count.take());
            }
        }
        self.counted_bytes.add_shared(bytes);
        self.counted_work.add_shared(work);
    }

    pub(super) fn counted_work(&self) -> usize {
        self.counted_work.get()
    }

    pub(super) fn counted_bytes(&self) -> usize {
        self.counted_bytes.get()
    }

    /// Takes back a chunk that was taken from a bag, after its words were processed.
    pub(super) fn give_back(&self, chunk: *mut Chunk) {
        // A tracer that takes the chunk relies on its count.
        // SAFETY: the chunk was taken from a bag, and is in no list.
        let count = unsafe { &raw mut (*chunk).count };
        // SAFETY: the count of a chunk that was taken from a bag.
        unsafe { count.write(0) };
        // SAFETY: the chunk was taken from a bag, is in no list, and has no items now.
        unsafe { self.gang.give_empty(chunk) };
    }

    /// Subtracts `twice` objects of a page from the counts, because two tracers counted them.
    pub(super) fn uncount(&self, page: &Page, twice: usize) {
        self.counted[page.page_list.get()].add(twice.wrapping_neg());
        self.counted_bytes.add((twice * page.footprint()).wrapping_neg());
    }

    /// Adds the objects that were counted to `live`, by page list, and returns their bytes. The
    /// counts are zero again.
    pub(super) fn take_counts(&self, live: &mut [usize; PAGE_LISTS]) -> usize {
        for (live, kept) in live.iter_mut().zip(&self.counted) {
            *live += kept.take();
        }
        self.counted_work.set(0);
        self.attempts.set(0);
        self.counted_bytes.take()
    }

    pub(super) fn end(&self) {
        self.chunks.end();
        self.gang.forget();
        self.local_marks.end();
        self.overflowed.store(0, Ordering::Relaxed);
        self.deadline.set(0);
        self.counted.iter().for_each(|count| count.set(0));
        self.counted_bytes.set(0);
        self.counted_work.set(0);
        self.attempts.set(0);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.chunks.each_lock(with);
        self.gang.each_lock(with);
    }

    /// Forgets helpers and workers, in a forked child, which has no other threads.
    pub(super) fn forget_others(&self) {
        self.helpers.forget();
        self.gang.forget_workers();
    }
}
