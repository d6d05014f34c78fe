//! Sparse buckets: their freed slots are reused while their live blocks stay.
//!
//! ```text
//!   bucket    | live | freed | freed | live | freed | freed | freed | ...   not a current bucket
//!   reopened           ^^^^^^^^^^^^^          ^^^^^^^^^^^^^^^^^^^^^         UNUSED again, in runs
//! ```
//!
//! A bucket is retired when its last block is freed, so one live block keeps the memory of all its
//! neighbours. A few such buckets are useful: their freed slots are checked and keep their history.
//! But a program that makes long-lived and short-lived blocks by the same calls would keep several
//! times its live bytes. So when open buckets take more memory than [`spared`], the next bucket of
//! a class is a sparse one, if there is one. At least half of its slots are freed. At least a
//! quarter were freed [`AGE`] or more operations ago. These are verified before they are reused.
//! If there are too many findings to record, some slots wait.
//!
//! Invariants:
//!
//! - A bucket with an `UNUSED` slot is some thread's current one (or lost to a forked child), and
//!   is not reopened.
//! - Slots are counted as live in the bucket before they become `UNUSED`, so the bucket cannot be
//!   retired meanwhile. A bucket whose count is zero is being retired, and is left alone.
//!
//! A cursor searches [`STEPS`] buckets for each bucket opened, and records candidates of all
//! classes. So a request's work does not grow with the number of buckets. Called by `store`, under
//! the heap's lock.

use core::ptr;

use crate::size_class::{CLASSES, UNIT};
use crate::sync::atomic::Ordering;

use super::bytes;
use super::history::extent;
use super::slot::{Slot, State, Word};
use super::span::{BucketRef, Form, Place, Span, Stage};
use super::store::{Units, Verify};

const AGE: i32 = if cfg!(miri) { 1 << 6 } else { 1 << 16 };
const STEPS: usize = 64;
const MOST_SLOTS: usize = UNIT / 16;
const NOTED: usize = 8;
const SPARED_LEAST: usize = if cfg!(miri) { 64 << 10 } else { 16 << 20 };

/// Returns the bytes that may be open or remembered with `live` bytes in use.
pub(super) const fn spared(live: u64) -> usize {
    let live = live as usize;
    SPARED_LEAST.saturating_add(live).saturating_add(live / 2)
}

pub(super) struct SparseBuckets {
    noted: [[*mut Span; NOTED]; CLASSES],
    at: (usize, usize),
}

impl SparseBuckets {
    pub(super) const fn new() -> Self {
        Self { noted: [[ptr::null_mut(); NOTED]; CLASSES], at: (0, 0) }
    }

    /// Reopens freed slots of a bucket of the class: they become its only `UNUSED` slots. `now` is
    /// the sequence number. `fills` tells whether freed slots hold the pattern.
    pub(super) fn reopen(
        &mut self,
        (heap, units): (u32, &Units),
        class: usize,
        now: u32,
        fills: bool,
        found: Verify<'_>,
    ) -> Option<BucketRef> {
        for at in 0..NOTED {
            let noted = core::mem::replace(&mut self.noted[class][at], ptr::null_mut());
            if let Some(bucket) = BucketRef::unpack(noted)
                && is_sparse(bucket, heap)
                && bucket.span.class() == class
                && open_freed(bucket, now, fills, found)
            {
                return Some(bucket);
            }
        }
        for _ in 0..STEPS {
            let Some(bucket) = self.next(heap, units) else { continue };
            if !is_sparse(bucket, heap) {
                continue;
            }
            if bucket.span.class() == class {
                if open_freed(bucket, now, fills, found) {
                    return Some(bucket);
                }
            } else if let Some(place) =
                self.noted[bucket.span.class()].iter_mut().find(|place| place.is_null())
            {
                *place = bucket.pack();
            }
        }
        None
    }

    fn next(&mut self, heap: u32, units: &Units) -> Option<BucketRef> {
        let (unit, index) = self.at;
        if let Some(span) = Span::heading(unit, heap)
            && span.form() == Form::Small
            && index < span.bucket_count()
        {
            self.at.1 += 1;
            return Some(BucketRef { span, index });
        }
        self.at = (units.after(unit), 0);
        None
    }
}

fn is_sparse(bucket: BucketRef, heap: u32) -> bool {
    let live = usize::from(bucket.record().live.load(Ordering::Relaxed));
    bucket.span.form() == Form::Small
        && bucket.span.heap.load(Ordering::Relaxed) == heap
        && bucket.index < bucket.span.bucket_count()
        && bucket.record().stage() == Stage::Open
        && live > 0
        && live * 2 <= bucket.span.slots_a_bucket()
}

/// Makes those slots `UNUSED` that were freed long enough ago. Returns false if they are too few.
fn open_freed(bucket: BucketRef, now: u32, fills: bool, found: Verify<'_>) -> bool {
    // The word is read first, because a free writes its sequence number before the word.
    let is_old = |record: &Slot| {
        record.word().state() == State::Freed && {
            // Another thread's operation may have a later number than `now`.
            let age = now.wrapping_sub(record.freed.load(Ordering::Relaxed)).cast_signed();
            age >= AGE
        }
    };
    let mut count = 0;
    for place in bucket.slots() {
        if place.is_unused() {
            return false;
        }
        count += usize::from(is_old(place.record()));
    }
    if count * 4 < bucket.span.slots_a_bucket() {
        return false;
    }
    // A thread with old sequence numbers may free another slot meanwhile.
    let mut chosen = [0u64; MOST_SLOTS / 64];
    count = 0;
    for place in bucket.slots().filter(|place| is_old(place.record())) {
        // A slot whose damage cannot be recorded stays freed until the next search.
        if fills && !is_verified(place, found) {
            break;
        }
        chosen[place.slot / 64] |= 1 << (place.slot % 64);
        count += 1;
    }
    if count == 0 || !bucket.record().count_again(count) {
        return false;
    }
    for place in
        bucket.slots().filter(|place| chosen[place.slot / 64] >> (place.slot % 64) & 1 != 0)
    {
        place.record().set(Word::UNUSED);
    }
    true
}

/// Verifies a freed slot. Records damage and repairs it, or returns false without room for that.
fn is_verified(place: Place, found: Verify<'_>) -> bool {
    let (bucket, at) = (place.bucket, place.slot_start());
    let slot_bytes = bucket.span.slot_bytes();
    // SAFETY: a freed slot of an open bucket, which is not guarded while the lock is held.
    let Some(damage) = (unsafe { bytes::check(at, slot_bytes) }) else { return true };
    let first = at.addr() + damage.first - extent(bucket).0.addr();
    if !found(bucket, bytes::Damage { first, ..damage }) {
        return false;
    }
    // SAFETY: no code uses the slot.
    unsafe { bytes::fill(at, slot_bytes) };
    true
}
