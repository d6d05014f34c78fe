//! Deallocation: the program frees a block or asks for its size.
//!
//! ```text
//!   address --> span --> bucket, slot --> record: live?      (else: a finding)
//!     are call, size, alignment right? the bytes around it unchanged?   (see `judge`)
//!     FREEING, filled, FREED; the bucket's last? --> retired
//! ```
//!
//! Called by `debug`'s entry points and by `resize`.

use core::ptr;

use heapwright_record::debug::{Call, Finding, FindingKind};

use crate::request::Return;

use crate::address_map::MAP;
use crate::memory_limit;
use crate::os;
use crate::sync::atomic::Ordering;

use super::super::budget::Allowance;
use super::super::bytes;
use super::super::history;
use super::super::shape::PAGE;
use super::super::slot::{SIZE_IN_SPAN, Slot, State, Word};
use super::super::span::{BucketRef, Form, Found, Memory, Place, Span};
use super::Heap;
use super::enter::EnteredState;
use super::findings::Here;
use super::late::Late;
use super::poison::clear_poison;

impl Heap {
    /// Frees a block in `span`, or reports the mistake.
    ///
    /// # Safety
    ///
    /// If the block is in use, no code uses it afterwards.
    #[inline]
    pub(crate) unsafe fn free(&'static self, span: &'static Span, address: usize, what: Return) {
        let Some(mut entered) = self.enter() else { return };
        let here = self.here(&mut entered, address, what);
        // SAFETY: the caller promises that no code uses the block afterwards.
        unsafe { self.deallocate(&mut entered, span, here) };
        if self.reporter.logs() {
            self.log(what.call, ptr::without_provenance_mut(address), 0, here.stack);
        }
    }

    /// # Safety
    ///
    /// As [`Heap::free`].
    pub(super) unsafe fn deallocate(
        &'static self,
        entered: &mut EnteredState,
        span: &'static Span,
        here: Here,
    ) {
        let address = here.address;
        let Some(place) = span.small_slot_at(address) else {
            // SAFETY: the caller promises that no code uses the block afterwards.
            return unsafe { self.deallocate_other(entered, span, here) };
        };
        let record = place.record();
        let word = record.word();
        if word.state() != State::Live {
            return self.not_live(entered, place, word, here);
        }
        // A single thread needs no locked instructions, which take twice as long.
        let alone = os::is_single_threaded();
        let freeing = word.freeing(entered.mine().thread);
        if let Err(now) = record.exchange_as(alone, word, freeing) {
            return self.not_live(entered, place, now, here);
        }
        self.note_freed(entered, record, here);
        let size = word.size();
        if span.has_poison() {
            clear_poison(place, size);
        }
        self.judge_call(entered, place, word, size, here);
        let mut fills = size;
        if self.rules.canary.load(Ordering::Relaxed) {
            self.judge_small_edges(entered, place, word, here);
        } else {
            fills = span.slot_bytes();
        }
        let made_at = record.made_at.load(Ordering::Relaxed);
        entered.mine().lifetimes.gone(made_at, span.class());
        entered.state().count_freed(size);
        if self.rules.fill.load(Ordering::Relaxed) {
            // SAFETY: this call freed the slot, so no other code uses it.
            unsafe { bytes::fill(MAP.base().with_addr(address), fills) };
        }
        record.set(freeing.freed());
        if place.bucket.record().free_one(alone) {
            // SAFETY: all blocks of the bucket were freed.
            unsafe { self.retire(entered, place.bucket) };
        }
    }

    #[inline]
    fn note_freed(&'static self, entered: &mut EnteredState, record: &Slot, here: Here) {
        let sequence = entered.mine().sequence(&self.sequence);
        record.freed_at.store(here.stack, Ordering::Relaxed);
        record.freed.store(sequence, Ordering::Relaxed);
    }

    /// Like [`Heap::deallocate`], for an address that is no small block's start.
    ///
    /// # Safety
    ///
    /// As [`Heap::free`].
    #[inline(never)]
    unsafe fn deallocate_other(
        &'static self,
        entered: &mut EnteredState,
        span: &'static Span,
        here: Here,
    ) {
        let Found::Slot(place) = span.locate(here.address) else {
            return self.not_a_block(entered, here);
        };
        let record = place.record();
        let word = record.word();
        if !place.is_live_at(word, here.address) {
            return self.not_live(entered, place, word, here);
        }
        let freeing = word.freeing(entered.mine().thread);
        if let Err(now) = record.exchange(word, freeing) {
            return self.not_live(entered, place, now, here);
        }
        self.note_freed(entered, record, here);
        let size = place.size(word);
        if span.has_poison() {
            clear_poison(place, size);
        }
        self.judge_call(entered, place, word, size, here);
        if self.rules.canary.load(Ordering::Relaxed) {
            self.judge_lone_edges(entered, place, word, here);
        }
        entered.state().count_freed(size);
        record.set(freeing.freed());
        place.bucket.record().live.store(0, Ordering::Relaxed);
        if self.rules.is_for_guards.load(Ordering::Relaxed) && memory_limit::is_in_sandbox() {
            // The page stays, because a sandbox may end the program for an unknown system call.
            return;
        }
        // SAFETY: the bucket's only block was freed.
        unsafe { self.retire(entered, place.bucket) };
    }

    /// # Safety
    ///
    /// No slot of the bucket is in use or can be handed out.
    #[cold]
    unsafe fn retire(&'static self, entered: &mut EnteredState, bucket: BucketRef) {
        let mut late = Late::new();
        let allowance = if self.spends() { self.budget.allowance() } else { Allowance::None };
        let wants = self.store.lock().empty(bucket, allowance);
        let spending = (wants && self.spends()).then(|| self.budget.begins());
        let fills = self.rules.fill.load(Ordering::Relaxed);
        if bucket.span.form() == Form::Small && fills && wants {
            // This is the last check, because the guard makes the bytes inaccessible.
            // SAFETY: all its slots were filled.
            if let Some(damage) = unsafe { history::verify(bucket) } {
                late.push_in(bucket, damage);
            }
        }
        // SAFETY: no code uses the bucket, and it is not yet in the history.
        let left = unsafe { history::leave(bucket, wants) };
        // The budget pays for the pages of a guard if the bucket could have been filled instead.
        // The pages are counted before the history owns the bucket.
        let bytes = match bucket.span.form() {
            Form::Small if allowance.is_generous() => bucket.span.bucket_bytes(),
            Form::Large if history::is_to_be_filled(bucket) => history::extent(bucket).1,
            _ => 0,
        };
        let pages = if left == Memory::Guarded { bytes / PAGE } else { 0 };
        {
            let mut store = self.store.lock();
            store.retire(bucket, left, &mut |bucket, damage| late.push_in(bucket, damage));
            self.note(&mut store);
        }
        if let Some(spending) = spending {
            self.budget.retired(&spending, pages);
        }
        if fills {
            self.report_late(entered.mine().thread, &late, Call::Retire);
        }
    }

    /// Returns the bytes requested for the block at `address`, or reports that no live block is
    /// there. A block of size 0 gets size 1, because callers write as many bytes as the usable
    /// size.
    pub(crate) fn size_of(
        &'static self,
        span: &'static Span,
        address: usize,
        what: Return,
    ) -> Option<usize> {
        let slot = slot_of(span, address);
        if let Some((place, word)) = slot
            && place.is_live_at(word, address)
        {
            let size = place.size(word);
            if size > 0 {
                return Some(size);
            }
            let entered = self.enter()?;
            if word.size() == SIZE_IN_SPAN {
                place.bucket.span.size.store(1, Ordering::Relaxed);
                entered.state().count_more(1);
            } else if place.record().exchange(word, word.of_one_byte()).is_ok() {
                entered.state().count_more(1);
            }
            return Some(1);
        }
        let mut entered = self.enter()?;
        let here = self.here(&mut entered, address, what);
        self.no_block(&mut entered, slot, here);
        None
    }

    /// Reports a live block of another pool, arena or heap, or an address with no live block.
    #[cold]
    pub(crate) fn of_another(&'static self, span: &'static Span, address: usize, what: Return) {
        let Some(mut entered) = self.enter() else { return };
        let here = self.here(&mut entered, address, what);
        let slot = slot_of(span, address);
        match slot.filter(|(place, word)| place.is_live_at(*word, address)) {
            Some((place, word)) => {
                let kind = FindingKind::AllocatorMismatch;
                self.report(Finding { kind, ..self.about(&mut entered, place, word, here) });
            }
            None => self.no_block(&mut entered, slot, here),
        }
    }

    #[cold]
    pub(super) fn no_block(
        &'static self,
        entered: &mut EnteredState,
        slot: Option<(Place, Word)>,
        here: Here,
    ) {
        match slot {
            Some((place, word)) => self.not_live(entered, place, word, here),
            None => self.not_a_block(entered, here),
        }
    }
}

pub(super) fn slot_of(span: &'static Span, address: usize) -> Option<(Place, Word)> {
    match span.locate(address) {
        Found::Slot(place) => Some((place, place.record().word())),
        _ => None,
    }
}
