//! Checks the arguments of a free, and the bytes around the block.
//!
//! ```text
//!   neighbour | its slack | block ......... | slack | next block
//!               ^ changed from its first byte on: an overflow of the neighbour
//!                       ^ only its last bytes changed: an underflow of the block
//! ```
//!
//! A free checks bytes that are probably in its cache lines: the block's slack, and the last bytes
//! before it. A later free or a sweep checks the others. Called by `deallocate` and `resize`.

use heapwright_record::debug::{Access, Finding, FindingKind, Origin};

use crate::address_map::MAP;
use crate::size_class::MIN_ALIGN;
use crate::stacks::{self, Stack};
use crate::sync::atomic::Ordering;

use super::super::bytes::{self, Damage};
use super::super::slot::{State, Word};
use super::super::span::{Form, Place};
use super::Heap;
use super::enter::EnteredState;
use super::findings::Here;

impl Heap {
    /// Checks that the call, the size and the alignment match the block's.
    #[inline(always)]
    pub(super) fn judge_call(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        size: usize,
        here: Here,
    ) {
        let what = here.what;
        let (origin, given) = (Origin::from_u8(word.origin()), what.origin.record());
        let wrong_call = family(origin) != family(given);
        let wrong_size = what.size.is_some_and(|given| given != size);
        // A delete without an alignment belongs to a new without an alignment.
        let plain =
            if word.align() > MIN_ALIGN && is_of_cxx(given) { Some(MIN_ALIGN) } else { None };
        let given_align = what.align.or(plain);
        let wrong_align = given_align.is_some_and(|given| given.min(1 << 31) != word.align());
        let wrong_call = wrong_call && !is_from_other_new(place, origin, given);
        if wrong_call || wrong_size || wrong_align {
            let given_align = given_align.unwrap_or(0) as u64;
            self.misjudged(entered, place, word, here, (wrong_call, wrong_size), given_align);
        }
    }

    #[cold]
    fn misjudged(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
        (wrong_call, wrong_size): (bool, bool),
        given_align: u64,
    ) {
        let kind = if wrong_call && self.rules.mismatch.load(Ordering::Relaxed) {
            FindingKind::AllocatorMismatch
        } else if !wrong_call && self.rules.size.load(Ordering::Relaxed) {
            if wrong_size { FindingKind::SizeMismatch } else { FindingKind::AlignmentMismatch }
        } else {
            return;
        };
        let finding = Finding { kind, given_align, ..self.about(entered, place, word, here) };
        self.report(finding);
    }

    #[inline(always)]
    pub(super) fn judge_small_edges(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
    ) {
        let slot_size = place.bucket.span.slot_bytes();
        let block = MAP.base().with_addr(here.address);
        let slack = slot_size - word.size();
        // SAFETY: a slot has sixteen bytes or more, and is not guarded while live.
        let well = slack <= 16 && unsafe { bytes::ends_well(block.wrapping_add(slot_size), slack) };
        if !well {
            self.judge_slack(entered, place, word, here);
        }
        if place.slot == 0 {
            return self.judge_lead(entered, place, word, here);
        }
        let neighbour = Place { slot: place.slot - 1, ..place };
        let its = neighbour.record().word();
        // This checks the last bytes of the neighbour's slack. The neighbour's free checks all.
        let its_slack = (slot_size - its.size()).min(16);
        // SAFETY: the neighbour's slot lies before this slot and has the same size.
        if !unsafe { bytes::ends_well(block, its_slack) } {
            self.judge_neighbour(entered, place, word, its_slack, here);
        }
    }

    #[inline(never)]
    fn judge_slack(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
    ) {
        let size = place.size(word);
        let (_, _, slack) = place.parts(size);
        let end = place.block().wrapping_add(size);
        // SAFETY: the slack is in the slot, which is not guarded while it is live.
        if let Some(damage) = unsafe { bytes::check(end, slack) } {
            let finding = self.overflow(entered, place, word, size, damage, here);
            self.report_damage(finding);
        }
    }

    /// Checks the bytes before a bucket's first block.
    #[inline(never)]
    fn judge_lead(&'static self, entered: &mut EnteredState, place: Place, word: Word, here: Here) {
        let near = place.near();
        let from = place.block().wrapping_sub(near);
        // SAFETY: the bytes near the block are filled, and not guarded while it is live.
        if let Some(damage) = unsafe { bytes::check(from, near) } {
            let finding = self.underflow(entered, place, word, damage, near, here);
            self.report_damage(finding);
        }
    }

    /// Decides which block caused a change of the neighbour's slack. Under the store's lock the
    /// slot is not reopened (see `sparse`), so its slack stays slack.
    #[cold]
    fn judge_neighbour(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        near: usize,
        here: Here,
    ) {
        let neighbour = Place { slot: place.slot - 1, ..place };
        let finding = {
            let _store = self.store.lock();
            let its = neighbour.record().word();
            if matches!(its.state(), State::Unused | State::Freeing) {
                return;
            }
            let (_, its_size, its_slack) = neighbour.parts(neighbour.size(its));
            let near = near.min(its_slack);
            let from = place.block().wrapping_sub(near);
            // SAFETY: the neighbour's slack lies before this slot.
            let Some(damage) = (unsafe { bytes::check(from, near) }) else { return };
            if near == its_slack && damage.first == 0 {
                let here = Here { address: neighbour.block().addr(), ..here };
                self.overflow(entered, neighbour, its, its_size, damage, here)
            } else {
                self.underflow(entered, place, word, damage, near, here)
            }
        };
        self.report_damage(finding);
    }

    pub(super) fn judge_lone_edges(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
    ) {
        self.judge_slack(entered, place, word, here);
        self.judge_lead(entered, place, word, here);
    }

    /// Returns the finding for a write beyond a block or before the next. Repairs the bytes.
    #[cold]
    fn overflow(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        size: usize,
        damage: Damage,
        here: Here,
    ) -> Finding {
        let end = place.block().wrapping_add(size);
        let (_, _, behind) = place.parts(size);
        // Damage that reaches the next block, but does not begin at this block's end, is the next
        // block's underflow.
        let gap_behind = behind - (damage.first + damage.length);
        let next = Place { slot: place.slot + 1, ..place };
        if damage.first > gap_behind
            && gap_behind == 0
            && place.bucket.span.form() == Form::Small
            && next.slot < place.bucket.span.slots_a_bucket()
            && next.record().word().state() != State::Unused
        {
            let its = next.record().word();
            let from_next = behind - damage.first;
            let damage = Damage { first: 0, ..damage };
            return self.underflow(entered, next, its, damage, from_next, here);
        }
        // SAFETY: the slack is ours. (After the repair the damage is not reported again.)
        unsafe { bytes::fill(end, behind) };
        Finding {
            kind: FindingKind::Overflow,
            access: Access::Write,
            offset: (size + damage.first) as i64,
            length: damage.length as u64,
            value: damage.value,
            pointer: end.addr() as u64 + damage.first as u64,
            ..self.about(entered, place, word, here)
        }
    }

    /// Returns the finding for a write before a block, at `damage.first - near`. Repairs the bytes.
    #[cold]
    fn underflow(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        damage: Damage,
        near: usize,
        here: Here,
    ) -> Finding {
        let from = place.block().wrapping_sub(near);
        // SAFETY: the bytes before the block are ours.
        unsafe { bytes::fill(from, near) };
        Finding {
            kind: FindingKind::Underflow,
            access: Access::Write,
            offset: damage.first as i64 - near as i64,
            length: damage.length as u64,
            value: damage.value,
            pointer: (from.addr() + damage.first) as u64,
            ..self.about(entered, place, word, here)
        }
    }
}

const fn is_of_cxx(origin: Origin) -> bool {
    matches!(origin, Origin::New | Origin::NewArray)
}

/// Returns whether another library's `operator new` made a block of `malloc` that a delete frees.
/// For example, libLLVM may be bound to its own `operator new`, and its users to our delete.
#[cold]
fn is_from_other_new(place: Place, origin: Origin, deleted_by: Origin) -> bool {
    if family(origin) != Origin::Malloc as u8 || !is_of_cxx(deleted_by) {
        return false;
    }
    let stack = Stack(place.record().made_at.load(Ordering::Relaxed));
    let mut is = false;
    if let Some(&caller) = stacks::frames(stack).first() {
        stacks::symbol_of(caller - 1, |name, _| {
            is = name.starts_with(b"_Znw") || name.starts_with(b"_Zna");
        });
    }
    is
}

/// The same calls free the blocks of a family.
const fn family(origin: Origin) -> u8 {
    match origin {
        Origin::Calloc
        | Origin::Realloc
        | Origin::Aligned
        | Origin::PosixMemalign
        | Origin::Heap => Origin::Malloc as u8,
        Origin::AlignedNew => Origin::New as u8,
        Origin::AlignedNewArray => Origin::NewArray as u8,
        other => other as u8,
    }
}
