//! The history: a queue of emptied buckets.
//!
//! ```text
//!   newest <-- ... <-- oldest      as many as its memory allows, linked through their records
//!
//!   a bucket   guarded  no pages, and any access is caught
//!              filled   the pattern, checked when the bucket leaves (large: in touched pages)
//! ```
//!
//! The pages of a *guarded* bucket go back to the kernel. A guard costs two system calls and
//! faults, several times as much as a fill and its later check. By default the heap guards all
//! blocks above 256 KiB, the first buckets of each list, and then one in 64. Others are guarded
//! while the budget of CPU time allows that (see `budget`). `guard=all` guards all.
//!
//! The slots' records stay with the bucket, so a late `free` of a block is reported with the block
//! and the call that freed it. By default the history takes up to a sixteenth to a quarter of the
//! open buckets' bytes (see `sparse`), at least 2 MiB. `memory=` limits it with the records.
//!
//! [`History`] belongs to `store`, under the heap's lock. `heap` also calls the functions for one
//! bucket. `deallocate` does so without the lock, because they make system calls and no other code
//! uses the bucket.

use core::ptr;

use crate::memory_limit;
use crate::os::{self, Memory as _, SYSTEM};
use crate::sync::atomic::Ordering;

use super::bytes;
use super::shape::PAGE;
use super::slot::Slot;
use super::span::{BucketRef, Form, Memory, Span, Stage};

const ENTRY_COST: usize = 64;
/// The cost of each unit of a guarded span, in bytes.
const UNIT_COST: usize = 700;
/// An unguarded large block up to this size stays filled.
const FILLED_MOST: usize = u64::BITS as usize * PAGE;
/// Blocks up to this size are filled whole, without a query for touched pages.
const ASKED_FROM: usize = 2 * PAGE;

pub(super) struct History {
    newest: *mut Span,
    oldest: *mut Span,
    bytes: usize,
}

impl History {
    pub(super) const fn new() -> Self {
        Self { newest: ptr::null_mut(), oldest: ptr::null_mut(), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

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
            // A guard costs a word for each page in the page tables. Buckets share a unit's other
            // costs.
            _ => {
                let (units, buckets) = (bucket.span.units(), bucket.span.bucket_count().max(1));
                bucket.span.bucket_bytes() / (PAGE / 8) + (units * UNIT_COST).div_ceil(buckets)
            }
        };
        memory + records + ENTRY_COST
    }
}

pub(crate) fn guarded_range(bucket: BucketRef) -> (*mut u8, usize) {
    match bucket.span.form() {
        Form::Sampled => (bucket.start().wrapping_add(PAGE), PAGE),
        _ => (bucket.start(), bucket.span.bucket_bytes()),
    }
}

/// Prepares an emptied bucket for the history. Guards it if `guard` is set and the kernel can.
/// Otherwise releases the pages of a large block above [`FILLED_MOST`], and fills a smaller one.
/// The frees have filled a bucket of small blocks already.
///
/// # Safety
///
/// No other code uses the bucket, and it is not in the history.
pub(crate) unsafe fn leave(bucket: BucketRef, guard: bool) -> Memory {
    let (from, length) = guarded_range(bucket);
    // SAFETY: the caller promises that the bucket is unused; the range consists of whole pages.
    if guard && unsafe { os::guard(from, length) } {
        return Memory::Guarded;
    }
    if bucket.span.form() != Form::Small {
        let (from, length) = extent(bucket);
        // Release the whole span: an earlier, longer block may have left the pattern. Guards stay.
        let (start, all) = (bucket.start(), bucket.span.bucket_bytes());
        // SAFETY: the pages are the bucket's, and no code uses them.
        if !is_to_be_filled(bucket) && unsafe { SYSTEM.decommit(start, all) } {
            return Memory::Zero;
        }
        // A large block may be sparse. Filling all of it would commit its untouched pages.
        let pages = touched_pages(from, length);
        bucket.span.filled.store(pages, Ordering::Relaxed);
        for (at, size) in runs(pages, length) {
            // SAFETY: the bytes are the bucket's, and no code uses them.
            unsafe { bytes::fill(from.wrapping_add(at), size) };
        }
    } else if guard {
        // A refused guard may have dropped part of the pattern.
        let (from, length) = extent(bucket);
        // SAFETY: the bytes are the bucket's; no code uses them, and they are not guarded.
        unsafe { bytes::fill(from, length) };
    }
    Memory::Pattern
}

/// Returns whether an unguarded emptied bucket is filled. If not, its pages go back.
pub(super) fn is_to_be_filled(bucket: BucketRef) -> bool {
    bucket.span.form() == Form::Small || extent(bucket).1 <= FILLED_MOST
}

/// Returns the pages of a large block that have memory, one bit each. All bits are set for a short
/// or very long block, or if the kernel does not tell. Pages without memory need not be zero: they
/// may be in swap.
fn touched_pages(from: *mut u8, length: usize) -> u64 {
    let mut resident = [0; FILLED_MOST / PAGE];
    let is_asked = length > ASKED_FROM
        && length <= FILLED_MOST
        && os::kernel_page_size() == PAGE
        // A sandbox may end the program for an unknown system call.
        && !memory_limit::is_in_sandbox();
    if !is_asked || !os::resident_pages(from.addr(), length, &mut resident) {
        return u64::MAX;
    }
    resident.iter().enumerate().fold(0, |pages, (at, page)| pages | u64::from(page & 1) << at)
}

/// Returns the runs of ones, as byte offset and length. All ones stand for `length` bytes.
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

/// Returns the parts of a filled bucket's [`extent`] that hold the pattern.
fn filled_runs(bucket: BucketRef) -> impl Iterator<Item = (usize, usize)> {
    let is_large = bucket.span.form() == Form::Large;
    let pages = if is_large { bucket.span.filled.load(Ordering::Relaxed) } else { u64::MAX };
    runs(pages, extent(bucket).1)
}

/// # Safety
///
/// The bucket is filled, not guarded and unused.
pub(crate) unsafe fn repair(bucket: BucketRef, damage: bytes::Damage) {
    let (from, _) = extent(bucket);
    let (first, end) = (damage.first, damage.first + damage.length);
    for (at, size) in filled_runs(bucket) {
        let (start, stop) = (at.max(first), (at + size).min(end));
        if start < stop {
            // SAFETY: the caller promises that no code uses the bucket.
            unsafe { bytes::fill(from.wrapping_add(start), stop - start) };
        }
    }
}

/// Returns the range of an emptied bucket that a fill covers. (A large one: in touched pages.)
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

/// Checks that an emptied bucket still holds the pattern. The damage is relative to [`extent`].
///
/// # Safety
///
/// The bucket was filled and is not guarded.
pub(crate) unsafe fn verify(bucket: BucketRef) -> Option<bytes::Damage> {
    let (from, _) = extent(bucket);
    let damaged = filled_runs(bucket).filter_map(|(at, size)| {
        // SAFETY: the caller promises that the bucket was filled and is readable.
        let damage = unsafe { bytes::check(from.wrapping_add(at), size) }?;
        Some(bytes::Damage { first: at + damage.first, ..damage })
    });
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
