//! The history: emptied buckets, and what they hold while they are in it.
//!
//! ```text
//!   newest <-- ... <-- oldest      as many as the budget holds, linked through their records
//!
//!   a bucket   guarded  no pages, and any access is caught
//!              filled   the pattern, which is looked for when the bucket leaves; of a large block in the pages that were touched
//! ```
//!
//! An emptied bucket is *guarded* (its pages go back to the kernel and any thread that touches them
//! is caught) or stays *filled* (a write to it is found out when it leaves the history). A guard
//! costs two system calls and faults, 2.4 us a page against 0.4 us for filling and verifying, so by
//! default large blocks (those up to 256 KiB unless the guards' budget is in debt) and the first
//! buckets of each class are guarded, then one in 64; `guard=all` guards all.
//!
//! The history keeps addresses from being used again: while a bucket is in it, its slots' records
//! are, and the report of a late `free` of one of its blocks names the block and what freed it. Its
//! budget is a sixteenth to a quarter of what open buckets hold (see `sparse`), or what `memory=`
//! says; the oldest go first.
//!
//! [`History`] is `store`'s, under the heap's lock. The functions for one bucket are called by
//! `heap` too, without the lock: they make system calls, and the bucket is in no use.

use core::ptr;

use crate::memory_limit;
use crate::os::{self, Memory as _, SYSTEM};
use crate::sync::atomic::Ordering;

use super::bytes;
use super::shape::PAGE;
use super::slot::Slot;
use super::span::{BucketRef, Form, Memory, Span, Stage};

/// What an entry of the history costs besides its memory.
const ENTRY_COST: usize = 64;
/// What a unit costs, for a span that is remembered.
const UNIT_COST: usize = 700;
/// Large blocks up to so many bytes stay filled, where they are not guarded.
const FILLED_MOST: usize = u64::BITS as usize * PAGE;
/// Of up to so many bytes (a sampled page, a large block for its alignment's sake) all are filled:
/// it is not asked which were touched.
const ASKED_FROM: usize = 2 * PAGE;

/// Emptied buckets, oldest first out.
pub(super) struct History {
    newest: *mut Span,
    oldest: *mut Span,
    bytes: usize,
}

impl History {
    pub(super) const fn new() -> Self {
        Self { newest: ptr::null_mut(), oldest: ptr::null_mut(), bytes: 0 }
    }

    /// What the buckets in it cost, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a bucket in, as it was left.
    pub(super) fn push(&mut self, bucket: BucketRef) {
        bucket.record().next.store(ptr::null_mut(), Ordering::Relaxed);
        let this = bucket.pack();
        match BucketRef::unpack(self.newest) {
            Some(newest) => newest.record().next.store(this, Ordering::Relaxed),
            None => self.oldest = this,
        }
        self.newest = this;
        self.bytes += Self::cost(bucket);
    }

    /// Takes the oldest bucket out.
    pub(super) fn pop(&mut self) -> Option<BucketRef> {
        let bucket = BucketRef::unpack(self.oldest)?;
        self.oldest = bucket.record().next.load(Ordering::Relaxed);
        if self.oldest.is_null() {
            self.newest = ptr::null_mut();
        }
        self.bytes -= Self::cost(bucket);
        Some(bucket)
    }

    fn cost(bucket: BucketRef) -> usize {
        let records = bucket.span.slots_a_bucket() * size_of::<Slot>();
        let memory = match bucket.record().stage() {
            Stage::Filled if bucket.span.form() == Form::Large => {
                filled_runs(bucket).map(|(_, size)| size).sum()
            }
            Stage::Filled => bucket.span.bucket_bytes(),
            // A guard is a word a page in the page tables; a unit has its row, its
            // record and its entry.
            // (It has them in common with the other buckets there.)
            _ => {
                let (units, buckets) = (bucket.span.units(), bucket.span.bucket_count().max(1));
                bucket.span.bucket_bytes() / (PAGE / 8) + (units * UNIT_COST).div_ceil(buckets)
            }
        };
        memory + records + ENTRY_COST
    }
}

/// What of a guarded bucket is guarded, and only then.
pub(crate) fn guarded_range(bucket: BucketRef) -> (*mut u8, usize) {
    match bucket.span.form() {
        Form::Sampled => (bucket.start().wrapping_add(PAGE), PAGE),
        _ => (bucket.start(), bucket.span.bucket_bytes()),
    }
}

/// Leaves an emptied bucket to the history: guarded, if that is wanted and can be had;
/// else a large one without its pages; else as it is, holding the pattern.
///
/// # Safety
///
/// The bucket is nobody's, and not in the history.
pub(crate) unsafe fn leave(bucket: BucketRef, guard: bool) -> Memory {
    let (from, length) = guarded_range(bucket);
    // SAFETY: the bucket is nobody's, and its pages are whole, as the caller promises.
    if guard && unsafe { os::guard(from, length) } {
        return Memory::Guarded;
    }
    if bucket.span.form() != Form::Small {
        let (from, length) = extent(bucket);
        // All of the span goes: behind this block an earlier, longer one may have left the pattern,
        // where its pages were to be guarded and the kernel refused. Guards stay.
        let (start, all) = (bucket.start(), bucket.span.bucket_bytes());
        // SAFETY: the bucket's pages, which are nobody's.
        if !is_to_be_filled(bucket) && unsafe { SYSTEM.decommit(start, all) } {
            return Memory::Zero;
        }
        // A large block may be sparse: to fill all of it would put memory behind the rest.
        let pages = touched_pages(from, length);
        bucket.span.filled.store(pages, Ordering::Relaxed);
        for (at, size) in runs(pages, length) {
            // SAFETY: the bucket's bytes, which are nobody's.
            unsafe { bytes::fill(from.wrapping_add(at), size) };
        }
    } else if guard {
        // A guard that was refused half way may have taken the pattern.
        let (from, length) = extent(bucket);
        // SAFETY: the bucket's bytes, which are nobody's, and not guarded.
        unsafe { bytes::fill(from, length) };
    }
    Memory::Pattern
}

/// Whether an emptied bucket is filled where it is not guarded; else its pages go.
pub(super) fn is_to_be_filled(bucket: BucketRef) -> bool {
    bucket.span.form() == Form::Small || extent(bucket).1 <= FILLED_MOST
}

/// The pages of a large block that have memory, a bit each; all of a long one, and where it cannot
/// be known. The others need not be zero: they may lie in swap. (A system call: 0.4 us for 16
/// pages, of which each may spare a fault.)
fn touched_pages(from: *mut u8, length: usize) -> u64 {
    let mut resident = [0; FILLED_MOST / PAGE];
    let is_asked = length > ASKED_FROM
        && length <= FILLED_MOST
        && os::kernel_page_size() == PAGE
        // A sandbox may end the program for a call that it does not know.
        && !memory_limit::is_in_sandbox();
    if !is_asked || !os::resident_pages(from.addr(), length, &mut resident) {
        return u64::MAX;
    }
    resident.iter().enumerate().fold(0, |pages, (at, page)| pages | u64::from(page & 1) << at)
}

/// The runs of ones in `pages`, as bytes from the first page's start and how many, of a block of
/// `length` bytes. All ones stand for a block of any length.
fn runs(pages: u64, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        if pages == u64::MAX {
            let rest = (at, length - at);
            at = length;
            return (rest.1 > 0).then_some(rest);
        }
        let left = pages.checked_shr((at / PAGE) as u32).filter(|&left| left != 0)?;
        let start = at + left.trailing_zeros() as usize * PAGE;
        let ones = (left >> left.trailing_zeros()).trailing_ones() as usize;
        at = start + ones * PAGE;
        (start < length).then(|| (start, (ones * PAGE).min(length - start)))
    })
}

/// What of a bucket's [`extent`] holds the pattern, where it is filled.
fn filled_runs(bucket: BucketRef) -> impl Iterator<Item = (usize, usize)> {
    let is_large = bucket.span.form() == Form::Large;
    let pages = if is_large { bucket.span.filled.load(Ordering::Relaxed) } else { u64::MAX };
    runs(pages, extent(bucket).1)
}

/// Puts right what [`verify`] has found.
///
/// # Safety
///
/// The bucket is filled, not guarded, and in no use.
pub(crate) unsafe fn repair(bucket: BucketRef, damage: bytes::Damage) {
    let (from, _) = extent(bucket);
    let (first, end) = (damage.first, damage.first + damage.length);
    for (at, size) in filled_runs(bucket) {
        let (start, stop) = (at.max(first), (at + size).min(end));
        if start < stop {
            // SAFETY: bytes of a bucket that is in no use, as the caller promises.
            unsafe { bytes::fill(from.wrapping_add(start), stop - start) };
        }
    }
}

/// What of an emptied bucket holds the pattern, where it is filled; of a large one in its touched
/// pages.
pub(crate) fn extent(bucket: BucketRef) -> (*mut u8, usize) {
    let span = bucket.span;
    match span.form() {
        Form::Small => {
            let shape = span.shape();
            let from = shape.lead as usize - shape.lead_watched();
            let (end, length) = shape.tail();
            (bucket.start().wrapping_add(from), end + length - from)
        }
        Form::Large => {
            (span.start().wrapping_add(PAGE), bucket.record().room.load(Ordering::Relaxed))
        }
        _ => (bucket.start().wrapping_add(PAGE), PAGE),
    }
}

/// Whether an emptied bucket still holds the pattern; the damage is relative to
/// [`extent`].
///
/// # Safety
///
/// It was filled, and is not guarded.
pub(crate) unsafe fn verify(bucket: BucketRef) -> Option<bytes::Damage> {
    let (from, _) = extent(bucket);
    let damaged = filled_runs(bucket).filter_map(|(at, size)| {
        // SAFETY: the bucket was filled and can be read, as the caller promises.
        let damage = unsafe { bytes::check(from.wrapping_add(at), size) }?;
        Some(bytes::Damage { first: at + damage.first, ..damage })
    });
    // From the first changed byte to the last.
    damaged.reduce(|one, other| bytes::Damage {
        length: other.first + other.length - one.first,
        ..one
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn all(pages: u64, length: usize) -> Vec<(usize, usize)> {
        runs(pages, length).map(|(at, size)| (at / PAGE, size)).collect()
    }

    #[test]
    fn runs_of_pages_are_those_of_ones() {
        assert_eq!(all(u64::MAX, 5), [(0, 5)]);
        assert_eq!(all(u64::MAX, 1 << 20), [(0, 1 << 20)]);
        assert_eq!(all(u64::MAX, 0), []);
        assert_eq!(all(0, 9 * PAGE), []);
        assert_eq!(all(0b1_0110, 9 * PAGE), [(1, 2 * PAGE), (4, PAGE)]);
        assert_eq!(all(0b1_0110, 4 * PAGE + 7), [(1, 2 * PAGE), (4, 7)]);
        assert_eq!(all(0b1_0110, 4 * PAGE), [(1, 2 * PAGE)]);
        assert_eq!(all(1 << 63, 64 * PAGE), [(63, PAGE)]);
        assert_eq!(all(u64::MAX >> 1, 64 * PAGE), [(0, 63 * PAGE)]);
    }
}
