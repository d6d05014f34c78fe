//! Sparse buckets: their freed slots are handed out again while their live blocks stay.
//!
//! ```text
//!   bucket    | live | freed | freed | live | freed | freed | freed | ...   no thread's current one
//!   reopened           ^^^^^^^^^^^^^          ^^^^^^^^^^^^^^^^^^^^^         UNUSED again, in runs
//! ```
//!
//! A bucket is retired when its last block is freed, so one block that stays keeps the memory of
//! all its neighbours. That is what the debug heap is for, as long as it is little: a freed slot
//! that nobody uses is watched, and remembers who freed it. But programs whose blocks of long and
//! of short lives come from the same calls would keep several times what they use (redis under
//! load: 129 MiB open for 36 MiB live). So once what is open exceeds [`spared`], the next bucket of
//! a class is a sparse one if there is one: at least half of its slots freed, a quarter of them for
//! [`AGE`] operations or longer. Those slots are verified first, as the bytes of a bucket that
//! leaves the history are; more findings than can be noted at once wait, and so do their slots.
//! (Redis' peak fell by a quarter, python3's by a tenth; with the history's budget, which follows
//! [`spared`] too, by 32 and 16 %.)
//!
//! Invariants:
//!
//! - A bucket with an `UNUSED` slot is some thread's current one (or is lost to a forked child),
//!   and is not reopened.
//! - As many slots as become `UNUSED` are counted as live in the bucket before; so it cannot
//!   be retired meanwhile. A bucket whose count is zero is being retired, and left alone.
//!
//! Candidates are looked for with a cursor of their own, [`STEPS`] buckets for each bucket opened,
//! and noted for the other classes: no request looks at more, however many buckets there are.
//!
//! Called by `store`, under the heap's lock.

use core::ptr;

use crate::size_class::{CLASSES, UNIT};
use crate::sync::atomic::Ordering;

use super::bytes;
use super::history::extent;
use super::slot::{Slot, State, Word};
use super::span::{BucketRef, Form, Place, Span, Stage};
use super::store::{Units, Verify};

/// Operations that a freed slot waits for, at least.
const AGE: i32 = if cfg!(miri) { 1 << 6 } else { 1 << 16 };
/// Buckets looked at for one that is opened.
const STEPS: usize = 64;
/// Slots of a bucket, at most.
const MOST_SLOTS: usize = UNIT / 16;
/// Candidates noted of each class.
const NOTED: usize = 8;
/// Open bytes that no live block has to be behind.
const SPARED_LEAST: usize = if cfg!(miri) { 64 << 10 } else { 16 << 20 };

/// Bytes that may be open or remembered while `live` bytes are in use: beyond that sparse buckets
/// are reopened, and the history is short.
pub(super) const fn spared(live: u64) -> usize {
    let live = live as usize;
    SPARED_LEAST.saturating_add(live).saturating_add(live / 2)
}

/// Candidates of each class, and where the search goes on.
pub(super) struct SparseBuckets {
    noted: [[*mut Span; NOTED]; CLASSES],
    /// The unit and the bucket in it.
    at: (usize, usize),
}

impl SparseBuckets {
    pub(super) const fn new() -> Self {
        Self { noted: [[ptr::null_mut(); NOTED]; CLASSES], at: (0, 0) }
    }

    /// Opens freed slots of a bucket of the class again: they are `UNUSED`, and in it alone. `now`:
    /// the sequence number; `fills`: freed slots hold the pattern.
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

    /// The bucket that the search comes to next, or none in a unit without.
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

/// Whether it looks as if the bucket could be reopened.
fn is_sparse(bucket: BucketRef, heap: u32) -> bool {
    let live = usize::from(bucket.record().live.load(Ordering::Relaxed));
    bucket.span.form() == Form::Small
        && bucket.span.heap.load(Ordering::Relaxed) == heap
        && bucket.index < bucket.span.bucket_count()
        && bucket.record().stage() == Stage::Open
        && live > 0
        && live * 2 <= bucket.span.slots_a_bucket()
}

/// Makes the slots `UNUSED` that were freed long enough ago. False: there is none that may be.
fn open_freed(bucket: BucketRef, now: u32, fills: bool, found: Verify<'_>) -> bool {
    // The word first: the number of a free is written before it, and that of an earlier one stays
    // while the slot is live.
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
    // A thread that has taken its numbers long ago may free another slot meanwhile, so these are
    // noted.
    let mut chosen = [0u64; MOST_SLOTS / 64];
    count = 0;
    for place in bucket.slots().filter(|place| is_old(place.record())) {
        // Up to one whose damage cannot be noted any more: that stays freed, for the next look.
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

/// Whether a freed slot has the pattern's bytes, from now on at least: what was found is noted.
/// False: there is no room for that.
fn is_verified(place: Place, found: Verify<'_>) -> bool {
    let (bucket, at) = (place.bucket, place.slot_start());
    let slot_bytes = bucket.span.slot_bytes();
    // SAFETY: a freed slot of an open bucket, which is not guarded while the heap's lock is held.
    let Some(damage) = (unsafe { bytes::check(at, slot_bytes) }) else { return true };
    let first = at.addr() + damage.first - extent(bucket).0.addr();
    if !found(bucket, bytes::Damage { first, ..damage }) {
        return false;
    }
    // SAFETY: the slot is nobody's.
    unsafe { bytes::fill(at, slot_bytes) };
    true
}
