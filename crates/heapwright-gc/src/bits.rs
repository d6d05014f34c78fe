//! A page's bitmaps: a bit for each granule of 16 bytes, set where an object begins.
//!
//! ```text
//!   page     |  slot 0  |  slot 1  |  slot 2  | ...          64 KiB, slots of 40 bytes
//!   granule  0    1    2    3    4    5    6    7 ...        4096
//!   bits     1    0    1    0    0    1    0    1            where slots begin
//! ```
//!
//! A shift of an object's address is the place of its bit, whatever the size of its slot. Marking
//! needs no division. [`start`] leads from a bit back to its slot, with at most one division.
//!
//! A page has two bitmaps. *Marks*, in the address map's side bitmap, belong to the collection.
//! *Taken*, in the page's record, is the result of the last sweep (see `page`). Words are atomics,
//! because several threads may mark at once.
//!
//! If a page has only a few large slots, each slot's bit is in a word of its own ([`Words`]). The
//! other words are neither cleared nor read, because cold memory is a large object's main cost.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a bit stands for.
pub(super) const GRANULE: usize = 16;
/// Words of a page's bitmap.
#[cfg(not(loom))]
pub(super) const WORDS: usize = UNIT / GRANULE / 64;
/// Under loom, a bitmap has one word. All words behave alike.
#[cfg(loom)]
pub(super) const WORDS: usize = 1;

pub(super) type Bits = [AtomicU64; WORDS];

/// A page has *few* slots if it has at most this many. Then the bit of each is in its own word.
const FEW: usize = 8;
/// Bytes of a page that a word's bits stand for.
const WORD_BYTES: usize = 64 * GRANULE;
const PAGE_BYTES: usize = WORDS * WORD_BYTES;

/// The words of a page's bitmaps that hold its slots' bits.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Bytes of the page from one word's slot to the next.
    step: usize,
    count: usize,
}

impl Words {
    pub(super) const ALL: Self = Self { step: WORD_BYTES, count: WORDS };

    /// The words for slots of `size` bytes. If slots are few, one word for each, and at least one.
    pub(super) fn of(size: usize) -> Self {
        if are_few(size) {
            Self { step: size, count: (PAGE_BYTES / size).max(1) }
        } else {
            Self::ALL
        }
    }

    fn are_all(self) -> bool {
        self.step == WORD_BYTES
    }

    fn each(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |n| n * self.step / WORD_BYTES)
    }
}

fn are_few(size: usize) -> bool {
    size.saturating_mul(FEW + 1) > PAGE_BYTES
}

/// The word and the mask of the bit of the slot that begins at byte `offset` of its page.
#[inline(always)]
pub(super) const fn place(offset: usize) -> (usize, u64) {
    let granule = offset / GRANULE;
    (granule / 64, 1 << (granule % 64))
}

/// Returns whether the slot that begins at byte `offset` has its bit.
#[inline]
pub(super) fn is_set(bits: &Bits, offset: usize) -> bool {
    let (word, mask) = place(offset);
    bits[word].load(Ordering::Relaxed) & mask != 0
}

/// Sets a bit. Returns whether it was clear. Only one thread at a time may call this.
#[inline]
pub(super) fn set(bits: &Bits, offset: usize) -> bool {
    let (word, mask) = place(offset);
    let before = bits[word].load(Ordering::Relaxed);
    bits[word].store(before | mask, Ordering::Relaxed);
    before & mask == 0
}

/// Sets a bit. Any number of threads may call this.
#[inline]
pub(super) fn set_shared(bits: &Bits, offset: usize) {
    let (word, mask) = place(offset);
    bits[word].fetch_or(mask, Ordering::Relaxed);
}

/// Clears a bit. Returns whether it was set. Any number of threads may call this.
#[inline]
pub(super) fn take(bits: &Bits, offset: usize) -> bool {
    let (word, mask) = place(offset);
    // Released: the last sweep had left the mark. A thread that sees the mark gone also sees that
    // this sweep is over (see `held`).
    bits[word].fetch_and(!mask, Ordering::Release) & mask != 0
}

/// Returns the start of the slot (of `size` bytes) that has the bit of `granule`.
pub(super) fn start(granule: usize, size: usize) -> usize {
    let at = granule * GRANULE;
    // Most sizes need no division.
    if size.is_multiple_of(GRANULE) { at } else { at.div_ceil(size) * size }
}

/// Returns the first granule at or behind `granule` whose bit is set.
fn next_set(bits: &Bits, granule: usize) -> Option<usize> {
    let mut word = granule / 64;
    let mut rest = bits.get(word)?.load(Ordering::Relaxed) & (u64::MAX << (granule % 64));
    loop {
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        word += 1;
        rest = bits.get(word)?.load(Ordering::Relaxed);
    }
}

/// Every `n`th bit from the lowest on.
const EVERY: [u64; 64] = {
    let mut every = [0; 64];
    let mut n = 1;
    while n < 64 {
        let mut at = 0;
        while at < 64 {
            every[n] |= 1 << at;
            at += n;
        }
        n += 1;
    }
    every
};

/// The bits where slots begin, word by word.
///
/// ```text
///   slots of 32 bytes   1 0 1 0 1 0 1 0 1 0      every second granule
///            40         1 0 1 0 0 1 0 1 0 0      every fifth, and every fifth from the third on:
///                                                two slots are five granules
/// ```
struct Starts {
    /// Granules after which the pattern repeats.
    step: usize,
    /// Granules from the first slot of a pair to the second, or 0 if there are no pairs.
    half: usize,
    /// The first bit of the next word at which a pair begins, or a slot if there are no pairs.
    phase: usize,
    /// The number of bits by which the phase shrinks from word to word.
    less: usize,
}

impl Starts {
    /// Begins at a word. Returns `None` for slots of 1024 bytes or more, for pairs from 512 bytes
    /// on, and if `size` is no multiple of 8 (a large object). Then the caller checks each slot.
    fn of(size: usize, word: usize) -> Option<Self> {
        let pairs = !size.is_multiple_of(GRANULE);
        let step = if pairs { size / (GRANULE / 2) } else { size / GRANULE };
        // (`step` is at least 64 then. A page's few slots are larger still.)
        if step >= 64 || !size.is_multiple_of(GRANULE / 2) {
            return None;
        }
        let phase = (step - word * 64 % step) % step;
        Some(Self { step, half: if pairs { step / 2 } else { 0 }, phase, less: 64 % step })
    }

    /// Returns the bits of the slots that begin in the next word. The second result has only the
    /// slots that begin in the middle of their granule.
    fn next(&mut self) -> (u64, u64) {
        let Self { step, half, phase, less } = *self;
        let second = if phase + half < step { phase + half } else { phase + half - step };
        self.phase = if phase < less { phase + step } else { phase } - less;
        let (first, second) = (EVERY[step] << phase, EVERY[step] << second);
        (first | second, second & !first)
    }
}

/// Returns the start of the slot that has the lowest bit of a word. `middle` has the bits of slots
/// that begin in the middle of their granule.
fn first_of(word: usize, bits: u64, middle: u64) -> usize {
    let bit = bits.trailing_zeros() as usize;
    word * WORD_BYTES + bit * GRANULE + (middle >> bit & 1) as usize * (GRANULE / 2)
}

/// Calls `with` for the start of each slot that has its bit in a word.
#[inline(always)]
fn each_of(word: usize, (mut bits, middle): (u64, u64), mut with: impl FnMut(usize)) {
    while bits != 0 {
        with(first_of(word, bits, middle));
        bits &= bits - 1;
    }
}

/// Returns the first slot without a bit, from the slot that begins at byte `from` on. The last slot
/// ends at byte `end`.
fn first_clear(bits: &Bits, from: usize, size: usize, end: usize) -> Option<usize> {
    let granule = from / GRANULE;
    let mut word = granule / 64;
    let Some(mut starts) = Starts::of(size, word) else {
        return (from..end).step_by(size).find(|&at| !is_set(bits, at));
    };
    let mut free = u64::MAX << (granule % 64);
    while word * WORD_BYTES < end {
        let (begin, middle) = starts.next();
        free &= begin & !bits[word].load(Ordering::Relaxed);
        if free != 0 {
            let at = first_of(word, free, middle);
            return (at < end).then_some(at);
        }
        free = u64::MAX;
        word += 1;
    }
    None
}

/// Calls `with` for each slot of `size` bytes, up to `end`, that is taken and has no mark. Slots
/// below byte `cursor` count as taken. If [`Starts::of`] has a pattern for `size`, calls `soon` for
/// each slot some time before `with`, to prefetch the slot.
pub(super) fn each_dead(
    (taken, cursor): (&Bits, usize),
    marks: &Bits,
    (size, end): (usize, usize),
    soon: impl Fn(usize),
    mut with: impl FnMut(usize),
) {
    let Some(mut starts) = Starts::of(size, 0) else {
        let dead = |&at: &usize| (at < cursor || is_set(taken, at)) && !is_set(marks, at);
        return (0..end).step_by(size).filter(dead).for_each(with);
    };
    // While the dead objects of a word are visited, those of the next word are fetched.
    let mut before = (0, 0);
    for (word, taken) in taken.iter().enumerate() {
        let below = (cursor / GRANULE).saturating_sub(word * 64);
        let below = if below >= 64 { u64::MAX } else { (1 << below) - 1 };
        let (begin, middle) = starts.next();
        let taken = taken.load(Ordering::Relaxed) | begin & below;
        let dead = (taken & !marks[word].load(Ordering::Relaxed), middle);
        each_of(word, dead, &soon);
        each_of(word.wrapping_sub(1), before, &mut with);
        before = dead;
    }
    each_of(WORDS - 1, before, with);
}

/// Returns the bounds of the first stretch of slots without a bit, from the slot that begins at
/// byte `from` on. The last slot ends at byte `end`. The stretch has at most `most` bytes, or is
/// one slot.
pub(super) fn next_clear(
    bits: &Bits,
    from: usize,
    size: usize,
    end: usize,
    most: usize,
) -> Option<(usize, usize)> {
    let at = first_clear(bits, from, size, end)?;
    let stop = if are_few(size) {
        (at + size..end).step_by(size).find(|&at| is_set(bits, at)).unwrap_or(end)
    } else {
        next_set(bits, at / GRANULE + 1).map_or(end, |granule| start(granule, size))
    };
    let most = if stop - at <= most { stop } else { at + (most / size).max(1) * size };
    Some((at, stop.min(end).min(most)))
}

/// Calls `with` for each slot of `size` bytes that has its bit, until `with` returns false.
pub(super) fn each_set(bits: &Bits, size: usize, mut with: impl FnMut(usize) -> bool) {
    if are_few(size) {
        let slots = (0..Words::of(size).count).map(|n| n * size);
        slots.filter(|&at| is_set(bits, at)).all(with);
        return;
    }
    for (number, word) in bits.iter().enumerate() {
        let mut rest = word.load(Ordering::Relaxed);
        while rest != 0 {
            let granule = number * 64 + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if !with(start(granule, size)) {
                return;
            }
        }
    }
}

/// Clears a bit. Only one thread at a time may call this.
pub(super) fn reset(bits: &Bits, offset: usize) {
    let (word, mask) = place(offset);
    bits[word].store(bits[word].load(Ordering::Relaxed) & !mask, Ordering::Relaxed);
}

/// Copies the bits of `from` to `to`, in `words`. Stores in `both` the bits that both had before.
/// Returns how many bits were copied, and how many are in `both`.
pub(super) fn copy_and_compare(
    from: &Bits,
    to: &Bits,
    both: &mut [u64; WORDS],
    words: Words,
) -> (usize, usize) {
    let (mut count, mut stay) = (0, 0);
    let copy = |n: usize| {
        let bits = from[n].load(Ordering::Relaxed);
        both[n] = bits & to[n].load(Ordering::Relaxed);
        count += bits.count_ones() as usize;
        stay += both[n].count_ones() as usize;
        to[n].store(bits, Ordering::Relaxed);
    };
    if words.are_all() {
        (0..WORDS).for_each(copy)
    } else {
        words.each().for_each(copy)
    }
    (count, stay)
}

/// Stores `bits` in `words` of `to`.
pub(super) fn assign(to: &Bits, bits: &[u64; WORDS], words: Words) {
    words.each().for_each(|n| to[n].store(bits[n], Ordering::Relaxed));
}

/// Adds all bits of `from` to `to`, and clears `from`. Returns how many were in both.
pub(super) fn merge(from: &Bits, to: &Bits) -> usize {
    let mut twice = 0;
    for (from, to) in from.iter().zip(to) {
        let bits = from.load(Ordering::Relaxed);
        if bits != 0 {
            let before = to.load(Ordering::Relaxed);
            twice += (before & bits).count_ones() as usize;
            to.store(before | bits, Ordering::Relaxed);
            from.store(0, Ordering::Relaxed);
        }
    }
    twice
}

pub(super) fn clear(bits: &Bits) {
    bits.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

pub(super) fn clear_words(bits: &Bits, words: Words) {
    if words.are_all() {
        return clear(bits);
    }
    words.each().for_each(|n| bits[n].store(0, Ordering::Relaxed));
}

#[cfg(all(test, not(loom)))]
pub(super) fn count(bits: &Bits) -> usize {
    bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    extern crate std;
    use std::vec::Vec;

    fn none() -> Bits {
        [const { AtomicU64::new(0) }; WORDS]
    }

    #[test]
    fn no_two_slots_share_a_bit() {
        for size in (16..=640).step_by(8) {
            let bits = none();
            for slot in 0..UNIT / size {
                assert!(set(&bits, slot * size), "{size}");
                assert_eq!(start(slot * size / GRANULE, size), slot * size);
            }
            assert_eq!(count(&bits), UNIT / size);
        }
    }

    #[test]
    fn a_large_object_is_one_slot_whatever_its_size() {
        for size in GRANULE..700 {
            let bits = none();
            let clear = |from| next_clear(&bits, from, size, size, usize::MAX / 2);
            let dead = |cursor| {
                let mut dead = Vec::new();
                each_dead((&bits, cursor), &none(), (size, size), |_| {}, |at| dead.push(at));
                dead
            };
            assert_eq!((clear(0), clear(size)), (Some((0, size)), None), "{size}");
            assert_eq!((dead(0), dead(size)), (Vec::new(), std::vec![0]), "{size}");
            set(&bits, 0);
            assert_eq!((clear(0), clear(size)), (None, None), "{size}");
            assert_eq!((dead(0), dead(size)), (std::vec![0], std::vec![0]), "{size}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::cases(300))]
        #[test]
        fn stretches_are_all_that_is_clear(
            size in prop_oneof![(2usize..80).prop_map(|n| n * 8), (40usize..2048).prop_map(|n| n * 16)],
            taken in proptest::collection::vec(any::<u16>(), 0..200),
            most in 0usize..10_000,
        ) {
            let slots = UNIT / size;
            let bits = none();
            let mut expected: Vec<bool> = std::vec![true; slots];
            for slot in taken.into_iter().map(|n| n as usize % slots) {
                prop_assert_eq!(set(&bits, slot * size), expected[slot]);
                expected[slot] = false;
            }
            let mut found = std::vec![false; slots];
            let mut from = 0;
            while let Some((at, stop)) = next_clear(&bits, from, size, slots * size, most) {
                prop_assert!(at >= from && stop > at && at % size == 0 && stop % size == 0);
                prop_assert!(stop - at <= most.max(size));
                (at / size..stop / size).for_each(|slot| found[slot] = true);
                from = stop;
            }
            prop_assert_eq!(&found, &expected);
            let mut free = std::vec![true; slots];
            each_set(&bits, size, |at| {
                free[at / size] = false;
                true
            });
            prop_assert_eq!(&free, &expected);
            let other = none();
            let live = count(&bits);
            // Every fifth slot has a mark. The slots below the cursor, a third of the page, count
            // as taken.
            let (marks, cursor) = (none(), slots / 3 * size);
            (0..slots).step_by(5).for_each(|slot| _ = set(&marks, slot * size));
            let mut dead = Vec::new();
            let fetched = core::cell::RefCell::new(Vec::new());
            let soon = |at| fetched.borrow_mut().push(at / size);
            each_dead((&bits, cursor), &marks, (size, slots * size), soon, |at| dead.push(at / size));
            let all_were = Starts::of(size, 0).is_some();
            prop_assert_eq!(&fetched.borrow()[..], if all_were { &dead[..] } else { &[] });
            let held = |&slot: &usize| slot < slots / 3 || !expected[slot];
            prop_assert_eq!(dead, (0..slots).filter(held).filter(|slot| slot % 5 != 0).collect::<Vec<_>>());
            let every_other = (0..slots).step_by(2).map(|slot| slot * size);
            every_other.clone().for_each(|at| _ = set(&other, at));
            let stay = every_other.filter(|&at| is_set(&bits, at)).count();
            let mut both = [0; WORDS];
            let words = Words::of(size);
            prop_assert_eq!(copy_and_compare(&bits, &other, &mut both, words), (live, stay));
            prop_assert_eq!((count(&bits), count(&other)), (live, live));
            let old = none();
            assign(&old, &both, words);
            prop_assert_eq!(count(&old), stay);
            let taken = (0..slots).filter(|slot| take(&old, slot * size)).count();
            prop_assert_eq!((taken, count(&old)), (stay, 0));
            // Bits that are in both are counted, and `some` is empty afterwards.
            let some = none();
            let both = (0..slots).step_by(3).map(|slot| slot * size);
            let fresh = both.clone().filter(|&at| set(&some, at) && !is_set(&other, at)).count();
            prop_assert_eq!(merge(&some, &other), both.clone().count() - fresh);
            prop_assert_eq!((count(&some), count(&other)), (0, live + fresh));
            prop_assert!(both.clone().all(|at| is_set(&other, at)));
        }
    }
}
