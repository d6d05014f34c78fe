//! The record of a slot: 24 bytes, far from the slot.
//!
//! ```text
//!   word       | freed by 16 | made by 16 | size 16 | .. | kept 1 | align 5 | origin 4 | state 3 |
//!   stacks     allocated at 32 | freed at 32
//!   sequence   allocated 32    | freed 32
//!
//!   state:   UNUSED --hand out--> LIVE --free--> FREEING --filled--> FREED
//!               ^------------- the bucket is opened again --------------/
//! ```
//!
//! A free or a resize claims the block by one compare-and-exchange of the word. If two threads free
//! a block at the same time, one exchange fails. In the state `FREEING` the slot's bytes are being
//! filled and must not be judged. The other fields are written before the word becomes LIVE or
//! FREED.
//!
//! Sequence numbers are ordered within one thread, and wrap. Threads are numbered in order of
//! arrival, up to 65534.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not handed out since its bucket was opened.
    Unused,
    Live,
    Freeing,
    Freed,
}

const KEPT: u64 = 1 << 12;
/// The size in a word if the span holds the block's true size.
pub(crate) const SIZE_IN_SPAN: usize = 0xffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    pub(crate) const UNUSED: Self = Self(0);

    pub(crate) const fn live(size: usize, align: usize, origin: u8, thread: u16) -> Self {
        let align = if align == 0 { 0 } else { align.trailing_zeros() };
        // Larger alignments are stored as 2^31.
        let align = if align > 31 { 31 } else { align };
        let size = if size < SIZE_IN_SPAN { size } else { SIZE_IN_SPAN };
        Self(
            1 | (origin as u64) << 3
                | (align as u64) << 7
                | (size as u64) << 16
                | (thread as u64) << 32,
        )
    }

    /// Returns the word of a block of size 0 after a usable-size call allowed one byte.
    pub(crate) const fn of_one_byte(self) -> Self {
        Self(self.0 & !(0xffff << 16) | 1 << 16)
    }

    pub(crate) const fn kept(self, kept: bool) -> Self {
        Self(self.0 & !KEPT | if kept { KEPT } else { 0 })
    }

    pub(crate) const fn is_kept(self) -> bool {
        self.0 & KEPT != 0
    }

    pub(crate) const fn freeing(self, thread: u16) -> Self {
        Self(self.0 & 0x0000_ffff_ffff_fff8 | 2 | (thread as u64) << 48)
    }

    pub(crate) const fn freed(self) -> Self {
        Self(self.0 & !7 | 3)
    }

    pub(crate) const fn state(self) -> State {
        match self.0 & 7 {
            0 => State::Unused,
            1 => State::Live,
            2 => State::Freeing,
            _ => State::Freed,
        }
    }

    pub(crate) const fn origin(self) -> u8 {
        (self.0 >> 3 & 15) as u8
    }

    pub(crate) const fn align(self) -> usize {
        1 << (self.0 >> 7 & 31)
    }

    pub(crate) const fn size(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }

    pub(crate) const fn made_by(self) -> u16 {
        (self.0 >> 32) as u16
    }

    pub(crate) const fn freed_by(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

#[repr(C)]
pub(crate) struct Slot {
    word: AtomicU64,
    pub(crate) made_at: AtomicU32,
    pub(crate) freed_at: AtomicU32,
    pub(crate) made: AtomicU32,
    pub(crate) freed: AtomicU32,
}

const _: () = assert!(size_of::<Slot>() == 24);

impl Slot {
    pub(crate) const fn unused() -> Self {
        Self {
            word: AtomicU64::new(0),
            made_at: AtomicU32::new(0),
            freed_at: AtomicU32::new(0),
            made: AtomicU32::new(0),
            freed: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Sets the word. Only the slot's owner may call this: the thread that hands the slot out, won
    /// the exchange, or opens the bucket.
    #[inline]
    pub(crate) fn set(&self, word: Word) {
        self.word.store(word.0, Ordering::Release);
    }

    /// Changes the word if it is `from`.
    #[inline]
    pub(crate) fn exchange(&self, from: Word, to: Word) -> Result<(), Word> {
        let done = self.word.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire);
        done.map(|_| ()).map_err(Word)
    }

    /// Like [`Slot::exchange`]. If the process has one thread, sets the word without a comparison.
    #[inline]
    pub(crate) fn exchange_as(&self, alone: bool, from: Word, to: Word) -> Result<(), Word> {
        if alone {
            self.set(to);
            return Ok(());
        }
        self.exchange(from, to)
    }

    /// Hands the slot out. No other thread may know the slot yet.
    #[inline]
    pub(crate) fn hand_out(&self, stack: u32, sequence: u32, word: Word) {
        self.made_at.store(stack, Ordering::Relaxed);
        self.made.store(sequence, Ordering::Relaxed);
        self.freed_at.store(0, Ordering::Relaxed);
        self.set(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::cases::cases(200))]

        #[test]
        fn a_word_says_what_was_put_in(size in 0usize..70_000, shift in 0u32..17, origin in 0u8..11, a in any::<u16>(), b in any::<u16>()) {
            let word = Word::live(size, 1 << shift, origin, a);
            prop_assert_eq!(word.state(), State::Live);
            prop_assert_eq!((word.size(), word.align()), (size.min(SIZE_IN_SPAN), 1 << shift));
            prop_assert_eq!((word.origin(), word.made_by(), word.freed_by()), (origin, a, 0));
            prop_assert!(!word.is_kept() && word.kept(true).is_kept());
            prop_assert_eq!((word.kept(true).align(), word.kept(true).kept(false)), (word.align(), word));
            let freeing = word.freeing(b);
            let freed = freeing.freed();
            prop_assert_eq!((freeing.state(), freed.state()), (State::Freeing, State::Freed));
            prop_assert_eq!((freed.size(), freed.align(), freed.origin()), (word.size(), word.align(), origin));
            prop_assert_eq!((freed.made_by(), freed.freed_by()), (a, b));
        }
    }

    #[test]
    fn one_of_two_frees_at_once_is_refused() {
        let slot = Slot {
            word: AtomicU64::new(0),
            made_at: AtomicU32::new(0),
            freed_at: AtomicU32::new(0),
            made: AtomicU32::new(0),
            freed: AtomicU32::new(0),
        };
        assert_eq!(slot.word(), Word::UNUSED);
        let live = Word::live(40, 16, 1, 3);
        slot.hand_out(7, 9, live);
        assert!(slot.exchange(live, live.freeing(4)).is_ok());
        assert_eq!(slot.exchange(live, live.freeing(5)), Err(live.freeing(4)));
    }
}
