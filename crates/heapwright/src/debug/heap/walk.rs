//! Walks over every live block of a heap, for leaks, for checks, and at the end.
//!
//! ```text
//!   units from the heap's first span to its last --> spans that begin there, of this heap
//!     --> buckets that are open --> slots that are live
//! ```
//! There is no list of spans: the address map has them, and walks are rare. A walk may mix
//! different moments. Called by `handle`, `reach` and `leaks`.

use crate::sync::atomic::Ordering;

use super::super::slot::{State, Word};
#[cfg(test)]
use super::super::span::Form;
use super::super::span::{BucketRef, Found, Place, Span, Stage};
use super::super::{checked, table};
use super::Heap;

impl Heap {
    pub(in crate::debug) fn spans(&self) -> impl Iterator<Item = &'static Span> {
        let heap = self.id();
        self.units.all().filter_map(move |unit| Span::heading(unit, heap))
    }

    fn open_ones(&self) -> impl Iterator<Item = BucketRef> {
        let buckets = self.spans().flat_map(Span::all_buckets);
        buckets.filter(|bucket| bucket.record().stage() == Stage::Open)
    }

    /// Visits the live block at `address`, which cannot be reused meanwhile, or returns false.
    pub(in crate::debug) fn with_live(
        &'static self,
        address: usize,
        visit: &mut dyn FnMut(*mut u8, usize),
    ) -> bool {
        if let Some(span) = Span::of(address)
            && span.heap.load(Ordering::Relaxed) == self.id()
        {
            let _store = self.store.lock();
            let Found::Slot(place) = span.locate(address) else { return false };
            let word = place.record().word();
            let is_live =
                place.bucket.record().stage() == Stage::Open && place.is_live_at(word, address);
            if is_live {
                visit(place.block(), place.size(word));
            }
            return is_live;
        }
        let table = self.table.lock();
        match table.live_at(address) {
            Some(entry) => {
                visit(entry.block(), entry.size);
                true
            }
            None => false,
        }
    }

    /// Visits the address, size and thread number of every live block, also of `Checked` blocks.
    pub(in crate::debug) fn each_block(&'static self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.each_live(|place, word, _| {
            visit(place.block().addr(), place.size(word), u32::from(word.made_by()));
        });
        let made = self.table.lock().made();
        for index in 0..made {
            let table = self.table.lock();
            if index >= table.made() {
                return;
            }
            let entry = table.get(index);
            drop(table);
            if entry.state == table::State::Live {
                visit(entry.block().addr(), entry.size, u32::from(entry.made_by));
            }
        }
    }

    pub(in crate::debug) fn report_leak_at(&'static self, address: usize) {
        if let Some(span) = Span::of(address) {
            if let Found::Slot(place) = span.locate(address) {
                self.report_leak(place, place.record().word());
            }
            return;
        }
        let entry = self.table.lock().live_at(address);
        if let Some(entry) = entry {
            checked::report_leak(self, &entry);
        }
    }

    /// Visits every live block: its place, word and sequence number.
    pub(crate) fn each_live(&'static self, mut visit: impl FnMut(Place, Word, u32)) {
        for bucket in self.open_ones() {
            for place in bucket.slots() {
                let word = place.record().word();
                if word.state() == State::Live {
                    visit(place, word, place.record().made.load(Ordering::Relaxed));
                }
            }
        }
    }

    pub(in crate::debug) fn clear(&'static self) {
        let mut store = self.store.lock();
        self.spans().for_each(|span| store.release_whatever(span));
        store.forget();
        drop(store);
        for state in self.all_states() {
            // SAFETY: no code uses the heap any more.
            let mine = unsafe { state.mine() };
            mine.forget_buckets();
            mine.lifetimes.forget();
            state.count_nothing();
        }
        self.peak_live.store(0, Ordering::Relaxed);
        self.table.lock().clear();
        self.reporter.forget();
    }

    /// For tests: counts the open buckets in small spans, those with free slots, and those with
    /// free slots that are no state's current bucket. No other code may use the heap meanwhile.
    #[cfg(test)]
    pub(in crate::debug) fn open_buckets(&'static self) -> (usize, usize, usize) {
        let (mut open, mut with_slots, mut unknown) = (0, 0, 0);
        let _store = self.store.lock();
        for bucket in self.open_ones().filter(|bucket| bucket.span.form() == Form::Small) {
            let span = bucket.span;
            open += 1;
            let unused = |place: &Place| place.record().word().state() == State::Unused;
            let left = bucket.slots().filter(unused).count();
            if left == 0 {
                continue;
            }
            with_slots += 1;
            let next = Place { bucket, slot: span.slots_a_bucket() - left }.slot_start();
            let is_current = self.all_states().any(|state| {
                // SAFETY: no code uses the heap now.
                let currents = &unsafe { state.mine() }.current[span.class()];
                currents.iter().any(|now| now.left as usize == left && now.at == next)
            });
            unknown += usize::from(!is_current);
        }
        (open, with_slots, unknown)
    }
}
