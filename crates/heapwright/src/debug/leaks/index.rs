//! The index: a number for every slot of the heap, and the live block at any address.
//!
//! ```text
//!   spans   | first number, span | first number, span | ...      by address
//!   first   unit -> its span's first number plus 1, or 0 if no span begins there
//!
//!   address --map--> span --arithmetic--> bucket, slot --> number = first + bucket * slots + slot
//! ```
//!
//! Each slot has a number, also in unopened buckets. So a check's result for a block is an array
//! element. No span comes or goes while the index is used, under the store's lock or in a copy of
//! the process.

use crate::address_map::MAP;
use crate::size_class::UNIT;
use crate::sync::atomic::Ordering;

use super::super::heap::Heap;
use super::super::leak_check::Amount;
use super::super::slot::{State, Word};
use super::super::span::{BucketRef, Found, Place, Span, Stage};
use super::zeroed::{Plain, ZeroedArray};

#[derive(Clone, Copy)]
struct Numbered {
    first: usize,
    span: Option<&'static Span>,
}

// SAFETY: the zero value is valid, without a span.
unsafe impl Plain for Numbered {}

pub(super) struct Index {
    heap: u32,
    /// The start of the window, and its bytes that may hold blocks.
    window: usize,
    window_bytes: usize,
    first: ZeroedArray<u32>,
    spans: ZeroedArray<Numbered>,
    pub(super) slots: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) number: usize,
    pub(super) place: Place,
    pub(super) word: Word,
    pub(super) start: usize,
    pub(super) size: usize,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Live {
    pub(super) amount: Amount,
    pub(super) has_kept: bool,
}

impl Index {
    pub(super) fn new(heap: &'static Heap) -> Option<Self> {
        let id = heap.id();
        let limit = MAP.limit();
        let count = heap.spans().count();
        let mut first = ZeroedArray::<u32>::new(limit)?;
        let mut numbered = ZeroedArray::<Numbered>::new(count)?;
        let mut slots = 0;
        for (place, span) in numbered.iter_mut().zip(heap.spans()) {
            *place = Numbered { first: slots, span: Some(span) };
            first[span.unit()] = u32::try_from(slots + 1).ok()?;
            slots += span.bucket_count() * span.slots_a_bucket();
        }
        let (window, window_bytes) = (MAP.base().addr(), limit * UNIT);
        Some(Self { heap: id, window, window_bytes, first, spans: numbered, slots })
    }

    /// Returns whether a word may be an address in a block. This test excludes most words.
    #[inline(always)]
    pub(super) fn may_hold(&self, word: usize) -> bool {
        word.wrapping_sub(self.window) < self.window_bytes
    }

    #[inline]
    pub(super) fn find(&self, address: usize) -> Option<Block> {
        let (unit, entry) = MAP.lookup(address);
        let span = Span::of_entry(unit, entry)?;
        if span.heap.load(Ordering::Relaxed) != self.heap {
            return None;
        }
        let Found::Slot(place) = span.locate(address) else { return None };
        let block = self.live(place)?;
        (address.wrapping_sub(block.start) < block.size.max(1)).then_some(block)
    }

    #[inline]
    fn live(&self, place: Place) -> Option<Block> {
        let word = place.record().word();
        if word.state() != State::Live {
            return None;
        }
        let span = place.bucket.span;
        let first = self.first.get(span.unit())?.checked_sub(1)? as usize;
        let number = first + place.bucket.index * span.slots_a_bucket() + place.slot;
        // A newer span has no numbers here.
        let start = place.block().addr();
        (number < self.slots).then(|| Block { number, place, word, start, size: place.size(word) })
    }

    pub(super) fn of_number(&self, number: usize) -> Option<Block> {
        let after = self.spans.partition_point(|span| span.first <= number);
        let numbered = self.spans.get(after.checked_sub(1)?)?;
        let (span, within) = (numbered.span?, number - numbered.first);
        let slots = span.slots_a_bucket();
        let bucket = BucketRef { span, index: within / slots };
        self.live(Place { bucket, slot: within % slots })
    }

    /// Returns the live blocks in the order of their numbers and addresses.
    pub(super) fn each(&self) -> impl Iterator<Item = Block> {
        let spans = self.spans.iter().filter_map(|numbered| numbered.span);
        let buckets = spans.flat_map(Span::all_buckets);
        let open = buckets.filter(|bucket| bucket.record().stage() == Stage::Open);
        open.flat_map(|bucket| bucket.slots()).filter_map(|place| self.live(place))
    }

    /// Adds up the live blocks. Also tells whether the program keeps one.
    pub(super) fn sum(&self) -> Live {
        let mut sum = Live::default();
        for block in self.each() {
            sum.amount.blocks += 1;
            sum.amount.bytes += block.size as u64;
            sum.has_kept |= block.word.is_kept();
        }
        sum
    }
}
