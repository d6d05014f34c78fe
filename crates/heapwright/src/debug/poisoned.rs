//! Poison marks bytes of live blocks whose use the program forbids (AddressSanitizer's interface).
//!
//! ```text
//!   a unit's row in the map's side bitmaps     | span | bits | summary, 128 bytes | ... 512
//!                                                       |       a bit for each word that has ones
//!                                                       v
//!   side memory                                8 KiB: a bit for each byte of the unit
//! ```
//!
//! A unit gets bits when one of its bytes is first poisoned, and keeps them until its span ends. A
//! span without poison costs one load ([`Span::has_poison`]). With the summary, a search reads only
//! words of bits that have ones.
//!
//! Bits of a live block are set under the store's lock. The free of a block clears its bits without
//! the lock. Meanwhile another thread may poison a byte of a neighbour in the same word. So the
//! word is read again after its summary bit was cleared. Called by `store`, `heap` and `process`.
//! Any thread may read at any time.

use core::ptr;

use crate::address_map::MAP;
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::side::{BITS, Side};
use super::span::{Poison, Span};

const WORDS: usize = UNIT / 64;

const _: () = assert!(size_of::<[AtomicU64; WORDS]>() == BITS);

/// The row of the side bitmaps of a span's unit.
#[repr(C)]
struct Row {
    _span: AtomicPtr<Span>,
    bits: AtomicPtr<[AtomicU64; WORDS]>,
    summary: [AtomicU64; WORDS / 64],
}

const _: () = assert!(size_of::<Row>() <= crate::address_map::SIDE_BITMAP);

#[derive(Clone, Copy)]
pub(crate) struct Piece {
    unit: usize,
    from: usize,
    pub(crate) bytes: usize,
}

fn row(unit: usize) -> &'static Row {
    // SAFETY: side bitmaps of units below the limit are committed, word-aligned, and zero unless a
    // slab uses them; a span's unit has no slab.
    unsafe { &*MAP.side_bitmap(unit).cast::<Row>() }
}

impl Row {
    fn bits(&self) -> Option<&'static [AtomicU64; WORDS]> {
        // SAFETY: the pointer is null or side memory for bits, which stays readable for ever.
        unsafe { self.bits.load(Ordering::Acquire).as_ref() }
    }

    fn may_have(&self, word: usize) -> bool {
        self.summary[word / 64].load(Ordering::Relaxed) & 1 << (word % 64) != 0
    }
}

fn words(piece: Piece) -> impl Iterator<Item = (usize, u64)> {
    let (from, end) = (piece.from, piece.from + piece.bytes);
    (from / 64..end.div_ceil(64)).map(move |word| {
        let first = from.saturating_sub(word * 64);
        let last = (end - word * 64).min(64);
        (word, u64::MAX >> (64 - (last - first)) << first)
    })
}

pub(crate) fn pieces(address: usize, bytes: usize) -> impl Iterator<Item = Piece> {
    let (mut at, mut left) = (address, bytes);
    core::iter::from_fn(move || {
        let from = at % UNIT;
        let bytes = left.min(UNIT - from);
        let piece = Piece { unit: MAP.unit_of(at), from, bytes };
        (at, left) = (at.wrapping_add(bytes), left - bytes);
        (bytes > 0).then_some(piece)
    })
}

impl Piece {
    pub(crate) fn address(self) -> usize {
        MAP.address_of(self.unit).addr() + self.from
    }
}

/// Poisons bytes, if memory allows. The caller must hold the lock of the store that owns `side`.
pub(crate) fn set(side: &mut Side, span: &Span, piece: Piece) {
    let row = row(piece.unit);
    if row.bits().is_none() {
        let bits = side.take_bits().cast::<[AtomicU64; WORDS]>();
        if bits.is_null() {
            return;
        }
        row.bits.store(bits, Ordering::Release);
    }
    let Some(bits) = row.bits() else { return };
    for (word, mask) in words(piece) {
        bits[word].fetch_or(mask, Ordering::SeqCst);
        row.summary[word / 64].fetch_or(1 << (word % 64), Ordering::SeqCst);
    }
    span.set_poison(Poison::Some);
}

/// Unpoisons bytes. Their block must be live, or the caller must be freeing the block.
#[cold]
pub(crate) fn clear(piece: Piece) {
    let row = row(piece.unit);
    let Some(bits) = row.bits() else { return };
    // The summary is not read, because another thread may clear a word's bit there for a moment.
    for (word, mask) in words(piece) {
        if bits[word].load(Ordering::Relaxed) & mask == 0 {
            continue;
        }
        if bits[word].fetch_and(!mask, Ordering::SeqCst) & !mask != 0 {
            continue;
        }
        let (summary, bit) = (&row.summary[word / 64], 1 << (word % 64));
        summary.fetch_and(!bit, Ordering::SeqCst);
        if bits[word].load(Ordering::SeqCst) != 0 {
            summary.fetch_or(bit, Ordering::SeqCst);
        }
    }
}

/// Returns the bytes, at most `most`, from an address in a span to the first poisoned one.
#[cold]
pub(crate) fn clean_bytes(address: usize, most: usize) -> usize {
    let mut clean = 0;
    for piece in pieces(address, most) {
        let row = row(piece.unit);
        if let Some(bits) = row.bits()
            && let Some(at) = words(piece)
                .filter(|&(word, _)| row.may_have(word))
                .find_map(|(word, mask)| first(word, bits[word].load(Ordering::Relaxed) & mask))
        {
            return clean + at - piece.from;
        }
        clean += piece.bytes;
    }
    most
}

/// Returns the bytes, at most `most`, from an address in a span to the first unpoisoned one.
#[cold]
pub(crate) fn poisoned_bytes(address: usize, most: usize) -> usize {
    let mut poisoned = 0;
    for piece in pieces(address, most) {
        let Some(bits) = row(piece.unit).bits() else { return poisoned };
        if let Some(at) = words(piece)
            .find_map(|(word, mask)| first(word, !bits[word].load(Ordering::Relaxed) & mask))
        {
            return poisoned + at - piece.from;
        }
        poisoned += piece.bytes;
    }
    most
}

fn first(word: usize, ones: u64) -> Option<usize> {
    (ones != 0).then(|| word * 64 + ones.trailing_zeros() as usize)
}

/// Releases the bits of a span that ends. The caller must hold the store's lock.
pub(crate) fn forget(side: &mut Side, span: &Span) {
    for unit in span.unit()..span.unit() + span.units() {
        let row = row(unit);
        let bits = row.bits.swap(ptr::null_mut(), Ordering::Relaxed);
        row.summary.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        if !bits.is_null() {
            // SAFETY: `set` took the memory, and the unit has no live block, so no code writes
            // here.
            unsafe { side.give_bits(bits.cast()) };
        }
    }
    span.set_poison(Poison::Never);
}

#[cfg(test)]
mod tests {
    use super::super::heap::bounds::room;
    use super::super::process::{find_block, poison, poisoned_bytes};
    use super::*;
    use crate::debug::{Config, DebugHeap, Guard};
    use core::alloc::{GlobalAlloc, Layout};
    extern crate std;
    use std::vec::Vec;

    fn heap() -> DebugHeap {
        DebugHeap::new(Config { quiet: true, guard: Guard::Never, ..Config::DEFAULT })
    }

    fn room_at(address: usize) -> usize {
        room(Span::of(address).expect("a block's"), address)
    }

    /// Four blocks have bits in one word.
    #[test]
    fn neighbours_in_one_word_keep_theirs() {
        let heap = heap();
        let layout = Layout::from_size_align(15, 1).expect("a layout");
        // SAFETY: the size is not zero.
        let blocks: Vec<_> = (0..16).map(|_| unsafe { heap.alloc(layout) }).collect();
        let is_poisoned = |at: usize| find_block(at).is_some_and(|found| found.is_poisoned);
        for (number, block) in blocks.iter().enumerate() {
            // The call names more bytes than the block has.
            poison(block.addr() + number % 15, 100, true);
        }
        for (number, &block) in blocks.iter().enumerate() {
            let (at, from) = (block.addr(), number % 15);
            assert_eq!((room_at(at), poisoned_bytes(at + from, 100)), (from, Some(15 - from)));
            assert!(!is_poisoned(at) || from == 0);
            assert!(is_poisoned(at + 14) && !is_poisoned(at + 15));
            if number % 2 == 0 {
                // SAFETY: the block is ours.
                unsafe { heap.dealloc(block, layout) };
                assert!(!is_poisoned(at + from));
            } else {
                poison(at + 12, 2, false);
            }
        }
        for (number, &block) in blocks.iter().enumerate().filter(|(number, _)| number % 2 == 1) {
            let (at, from) = (block.addr(), number % 15);
            assert!(is_poisoned(at + 14) && !is_poisoned(at + 12) && !is_poisoned(at + 13));
            assert_eq!(room_at(at), if from == 13 { 14 } else { from.min(14) }, "{number}");
            // SAFETY: the block is ours.
            unsafe { heap.dealloc(block, layout) };
        }
        assert_eq!(heap.findings(), 0);
    }

    #[test]
    fn a_span_that_ends_leaves_nothing() {
        const SIZE: usize = UNIT;
        let heap = heap();
        let layout = Layout::from_size_align(SIZE, 16).expect("a layout");
        // SAFETY: the size is not zero.
        let block = unsafe { heap.alloc(layout) };
        let (at, span) = (block.addr(), Span::of(block.addr()).expect("a block's"));
        let units = span.unit()..span.unit() + span.units();
        assert!(units.len() > 1);
        // A range across the end of the first unit.
        let (from, bytes) = (UNIT - at % UNIT - 100, 107);
        poison(at + from, bytes, true);
        assert_eq!((room_at(at), room_at(at + from + 1)), (from, 0));
        assert_eq!(room_at(at + from + bytes), SIZE - from - bytes);
        assert_eq!(poisoned_bytes(at + from, SIZE), Some(bytes));
        assert_eq!(units.clone().filter(|&unit| row(unit).bits().is_some()).count(), 2);
        // SAFETY: the block is ours.
        unsafe { heap.dealloc(block, layout) };
        assert!(!span.has_poison());
        heap.deinit();
        for unit in units {
            assert!(row(unit).bits().is_none());
        }
    }
}
