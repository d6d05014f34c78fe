//! Late findings: damage found under the store's lock, and reported after its release.
//!
//! Called where buckets are opened, retired or swept.

use core::mem::MaybeUninit;

use heapwright_record::debug::{Access, Call, Finding, FindingKind, Moment};

use crate::sync::atomic::Ordering;

use super::super::bytes::Damage;
use super::super::history;
use super::super::slot::State;
use super::super::span::{BucketRef, Form, Found, Place};
use super::Heap;
use super::findings::of_block;

/// Whole findings, because the bucket may be reused before the report.
pub(super) struct Late {
    found: [MaybeUninit<Finding>; 8],
    count: usize,
}

impl Late {
    #[inline]
    pub(super) const fn new() -> Self {
        Self { found: [const { MaybeUninit::uninit() }; 8], count: 0 }
    }

    /// Adds damage in a bucket, counted from the start of its extent. Returns false without room.
    /// Then a later check must find the damage again. (No check follows for buckets that leave the
    /// history, so a ninth such damage is lost.)
    #[cold]
    pub(super) fn push_in(&mut self, bucket: BucketRef, damage: Damage) -> bool {
        self.push(bucket, history::extent(bucket).0.addr() + damage.first, damage)
    }

    /// Adds damage at an address. Returns false without room, like [`Late::push_in`].
    #[cold]
    pub(super) fn push(&mut self, bucket: BucketRef, address: usize, damage: Damage) -> bool {
        let Some(place) = self.found.get_mut(self.count) else { return false };
        place.write(found_at(bucket, address, damage));
        self.count += 1;
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == self.found.len()
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = &Finding> {
        // SAFETY: the first `count` findings were written.
        self.found[..self.count].iter().map(|finding| unsafe { finding.assume_init_ref() })
    }
}

impl Heap {
    #[inline]
    pub(super) fn report_late(&'static self, thread: u16, late: &Late, call: Call) {
        for finding in late.iter() {
            self.report_one_late(thread, finding, call);
        }
    }

    #[cold]
    fn report_one_late(&'static self, thread: u16, finding: &Finding, call: Call) {
        let is_edge = matches!(finding.kind, FindingKind::Overflow | FindingKind::Underflow);
        if is_edge && !self.rules.canary.load(Ordering::Relaxed) {
            return;
        }
        let here =
            Moment { thread: u32::from(thread), ns: self.reporter.now(), ..Moment::default() };
        self.report_damage(Finding { call, here, ..*finding });
    }
}

/// Returns the finding for changed bytes in a bucket: in a freed block, beyond or before a block.
fn found_at(bucket: BucketRef, address: usize, damage: Damage) -> Finding {
    let last = bucket.span.slots_a_bucket() - 1;
    let middle = bucket.start().addr() + bucket.span.bucket_bytes() / 2;
    let mut place = match bucket.span.locate(address) {
        Found::Slot(place) => place,
        _ => Place { bucket, slot: if address < middle { 0 } else { last } },
    };
    let mut word = place.record().word();
    let mut kind = FindingKind::WriteAfterFree;
    let end = place.block().addr() + place.size(word);
    if address < place.block().addr() {
        kind = FindingKind::Underflow;
    } else if address >= end {
        kind = FindingKind::Overflow;
        // Did the last bytes before the next block change, but not the first byte behind this one?
        let (_, _, behind) = place.parts(place.size(word));
        let next = Place { slot: place.slot + 1, ..place };
        if bucket.span.form() == Form::Small
            && place.slot < last
            && address + damage.length == end + behind
            && address - end > damage.length
            && next.record().word().state() != State::Unused
        {
            kind = FindingKind::Underflow;
            place = next;
            word = place.record().word();
        }
    }
    Finding {
        kind,
        access: Access::Write,
        value: damage.value,
        length: damage.length as u64,
        pointer: address as u64,
        offset: address as i64 - place.block().addr() as i64,
        ..of_block(place, word)
    }
}
