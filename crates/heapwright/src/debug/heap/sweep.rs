//! Sweeps check slack and fill without a free.
//!
//! ```text
//!   a bucket is opened   checks one more bucket of the heap, all in turn
//!   at exit, on request  checks all, and filled buckets in the history; a forked
//!                        child: its own, and some inherited ones
//! ```
//!
//! Called by `place` and by `debug`'s entry points.

use heapwright_record::debug::Call;

use crate::os;
use crate::sync::atomic::Ordering;

use super::super::bytes;
use super::super::history;
use super::super::slot::State;
use super::super::span::{Bucket, BucketRef, Form, Place, Span, Stage};
use super::super::store::Store;
use super::Heap;
use super::late::Late;

const SWEEP_UNITS: usize = 64;
/// The most passes over one unit, whose damage may be more than a pass can record.
const PASSES: usize = 512;
/// A forked child's last check of inherited blocks takes so long, plus 1/`CHILD_SHARE` of its life.
const CHILD_LEAST_NS: u64 = 200_000;
const CHILD_SHARE: u64 = 4;

impl Heap {
    /// Checks one more bucket of the heap: blocks' slack, and freed blocks' fill.
    pub(super) fn sweep_step(&'static self, store: &mut Store, late: &mut Late) {
        if let Some(bucket) = store.next_for_sweep(SWEEP_UNITS) {
            self.sweep_bucket(bucket, late);
        }
    }

    /// The caller must hold the store's lock, so that no bucket is retired or guarded meanwhile.
    fn sweep_bucket(&'static self, bucket: BucketRef, late: &mut Late) {
        let canary = self.rules.canary.load(Ordering::Relaxed);
        let fill = self.rules.fill.load(Ordering::Relaxed);
        if bucket.record().stage() != Stage::Open {
            return;
        }
        let (shape, is_small) = (bucket.span.shape(), bucket.span.form() == Form::Small);
        let first = Place { bucket, slot: 0 };
        let (start, records) = (first.slot_start(), first.records());
        for slot in 0..shape.slots as usize {
            // SAFETY: the span of an open bucket exists; these are its slots' records.
            let record = unsafe { &*records.wrapping_add(slot) };
            let (word, sequence) = (record.word(), record.made.load(Ordering::Relaxed));
            let place = Place { bucket, slot };
            let (block, size, behind) = if is_small {
                let (size, room) = (word.size(), shape.slot as usize);
                (start.wrapping_add(slot * room), size, room - size)
            } else {
                let (_, size, behind) = place.parts(place.size(word));
                (place.block(), size, behind)
            };
            let look = |from: *mut u8, length: usize| {
                // SAFETY: while the store is locked, an open bucket's slots and lead are not
                // guarded.
                unsafe { bytes::check(from, length) }.map(|damage| (from, damage))
            };
            let found = match word.state() {
                State::Live if canary => {
                    let near = if is_small && slot > 0 { 0 } else { place.near() };
                    look(block.wrapping_add(size), behind)
                        .or_else(|| look(block.wrapping_sub(near), near))
                }
                State::Freed if fill && is_small => look(block, size + behind),
                _ => None,
            };
            if let Some((from, damage)) = found
                // The slot was not freed and reopened meanwhile.
                && record.word() == word
                && record.made.load(Ordering::Relaxed) == sequence
                && late.push(bucket, from.addr() + damage.first, damage)
            {
                // SAFETY: bytes of the pattern, which are ours to repair.
                unsafe { bytes::fill(from.wrapping_add(damage.first), damage.length) };
            }
        }
    }

    pub(crate) fn sweep_all(&'static self, call: Call) {
        self.sweep_each(call, |_| true, u64::MAX);
    }

    /// Checks all buckets for the last time. A forked child checks inherited blocks only for a
    /// limited time, because its parent checks them, too.
    pub(in crate::debug) fn sweep_last(&'static self) {
        let forked_at = self.forked_at.load(Ordering::Relaxed);
        if forked_at == 0 {
            return self.sweep_all(Call::Exit);
        }
        let epoch = {
            let Some(store) = self.store.lock_soon() else { return };
            store.epoch
        };
        let is_own = |bucket: &Bucket| bucket.epoch.load(Ordering::Relaxed) == epoch;
        self.sweep_each(Call::Exit, is_own, u64::MAX);
        let now = os::now_ns();
        let lived = now.saturating_sub(forked_at);
        let until = now + CHILD_LEAST_NS + lived / CHILD_SHARE;
        self.sweep_each(Call::Exit, |bucket| !is_own(bucket), until);
    }

    fn sweep_each(&'static self, call: Call, which: impl Fn(&Bucket) -> bool, until: u64) {
        let (mut unit, mut end, mut passes) = (self.units.all().start, usize::MAX, 0);
        while unit < end {
            let mut late = Late::new();
            {
                // The process may end in a signal handler that interrupted the heap.
                let Some(_store) = self.store.lock_soon() else { return };
                end = end.min(self.units.all().end);
                for _ in 0..SWEEP_UNITS {
                    if unit >= end || late.is_full() {
                        break;
                    }
                    if let Some(span) = Span::heading(unit, self.id()) {
                        if until != u64::MAX && os::now_ns() > until {
                            end = unit;
                            break;
                        }
                        for bucket in span.all_buckets().filter(|bucket| which(bucket.record())) {
                            self.sweep_bucket(bucket, &mut late);
                            self.verify_retired(bucket, &mut late);
                        }
                        if late.is_full() && passes < PASSES {
                            // There may be more damage, which was not recorded.
                            passes += 1;
                            break;
                        }
                    }
                    (unit, passes) = (unit + 1, 0);
                }
            }
            self.report_late(0, &late, call);
        }
    }

    fn verify_retired(&'static self, bucket: BucketRef, late: &mut Late) {
        if self.rules.fill.load(Ordering::Relaxed)
            && bucket.record().stage() == Stage::Filled
            // SAFETY: the bucket is filled, and not guarded while the store is locked.
            && let Some(damage) = unsafe { history::verify(bucket) }
            && late.push_in(bucket, damage)
        {
            // SAFETY: the bucket is filled, unused, and not guarded while the store is locked.
            unsafe { history::repair(bucket, damage) };
        }
    }
}
