//! The memo: a thread's recent captures, and the check that a walk would return one of them again.
//!
//! ```text
//!   entry   sp, pc   the start           depth, generation      stack: the result
//!           slots    (place above sp, the word that was there) ...
//!                    return addresses, and those saved frame pointers that a CFA was made of
//! ```
//!
//! # Why a hit is right
//!
//! A walk is a function of its initial registers, the rules, and the words it reads. If the
//! relevant registers and all words read so far equal the entry's, the new walk is where the old
//! walk was. So it uses the same rule: the generation shows that no rule was forgotten, and walks
//! through code in no module are not kept. So it reads the same slot next. By induction, equal
//! words lead to the same end. Values that are not compared did not matter, such as a frame pointer
//! that was reloaded before a CFA was derived from it.
//!
//! The check may read the slots if the stack pointer and the highest slot are on the thread's own
//! stack *now*. There, everything above the stack pointer is readable (`bounds`). Walks that left
//! this stack (signal frames, fibers) are not kept. The compares are independent of each other, but
//! a walk waits for each load in turn.
//!
//! One thread at a time uses a memo: it is part of a `Scratch`.

use super::super::Stack;
use super::bounds::word_at;
use super::walk::Registers;

/// The slots of an entry. Walks with more are not kept.
const SLOTS: usize = 48;
const WAYS: usize = 4;
const SETS: usize = 8;

struct Entry {
    sp: usize,
    pc: usize,
    /// The initial frame pointer, if the walk depended on it.
    fp: usize,
    /// 0 if there is no entry.
    generation: u32,
    stack: u32,
    /// Words from `sp` to the highest slot.
    highest: u16,
    depth: u8,
    count: u8,
    fp_matters: bool,
    /// Words from `sp`.
    places: [u16; SLOTS],
    words: [usize; SLOTS],
}

impl Entry {
    const EMPTY: Self = Self {
        sp: 0,
        pc: 0,
        fp: 0,
        generation: 0,
        stack: 0,
        highest: 0,
        depth: 0,
        count: 0,
        fp_matters: false,
        places: [0; SLOTS],
        words: [0; SLOTS],
    };
}

/// Recent captures. Zeroed memory is a valid value.
pub(super) struct Memo {
    sets: [[Entry; WAYS]; SETS],
    turns: [u8; SETS],
}

pub(super) struct Slots {
    /// Places and values. There is one more than needed: a walk writes first, and counts later.
    read: [(usize, usize); SLOTS + 1],
}

/// The number of words that count, and whether the initial frame pointer counts.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) count: usize,
    pub(super) fp_matters: bool,
}

impl Noted {
    pub(super) const NONE: Self = Self { count: 0, fp_matters: false };
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self { read: [(0, 0); SLOTS + 1] }
    }

    /// Notes a word that was read, if it `matters`. Returns the new count.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        count: usize,
        address: usize,
        word: usize,
        matters: bool,
    ) -> usize {
        self.read[count.min(SLOTS)] = (address, word);
        count + usize::from(matters)
    }

    /// Notes the word of a frame pointer, if it `matters`, and of a return address.
    #[inline(always)]
    pub(super) fn note_two(
        &mut self,
        count: usize,
        (address, word, matters): (usize, usize, bool),
        back: (usize, usize),
    ) -> usize {
        // Without room for both, the count grows beyond the kept words.
        let at = count.min(SLOTS - 1);
        let more = usize::from(matters);
        self.read[at] = (address, word);
        self.read[at + more] = back;
        count + more + 1
    }
}

fn set_of(start: &Registers) -> usize {
    let hash = (start.pc ^ start.sp.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash >> (usize::BITS - SETS.ilog2())
}

impl Memo {
    pub(super) const fn new() -> Self {
        Self { sets: [const { [Entry::EMPTY; WAYS] }; SETS], turns: [0; SETS] }
    }

    /// Call this only if the start's stack pointer is a multiple of 8 on the thread's own stack,
    /// which ends at `end`.
    #[inline(always)]
    pub(super) fn find(
        &self,
        start: &Registers,
        depth: usize,
        generation: u32,
        end: usize,
    ) -> Option<Stack> {
        self.sets[set_of(start)].iter().find_map(|entry| {
            let same = entry.sp == start.sp
                && entry.pc == start.pc
                && entry.generation == generation
                && entry.depth as usize == depth
                && (entry.fp == start.fp || !entry.fp_matters)
                && entry.highest as usize * 8 < end - start.sp;
            (same && holds(entry)).then_some(Stack(entry.stack))
        })
    }

    pub(super) fn keep(
        &mut self,
        start: &Registers,
        depth: usize,
        generation: u32,
        (slots, noted): (&Slots, Noted),
        stack: Stack,
    ) {
        let Some(read) = slots.read.get(..noted.count).filter(|read| read.len() <= SLOTS) else {
            return;
        };
        let set = set_of(start);
        // Ways are used in turn: several walks may lead to one place, and each needs an entry.
        self.turns[set] = self.turns[set].wrapping_add(1);
        let way = self.turns[set] as usize % WAYS;
        let entry = &mut self.sets[set][way];
        entry.generation = 0;
        let mut highest = 0;
        let kept = entry.places.iter_mut().zip(&mut entry.words);
        for (&(address, word), (place, kept)) in read.iter().zip(kept) {
            let Ok(offset) = u16::try_from(address.wrapping_sub(start.sp) / 8) else {
                return;
            };
            highest = highest.max(offset);
            *place = offset;
            *kept = word;
        }
        entry.sp = start.sp;
        entry.pc = start.pc;
        entry.fp = start.fp;
        entry.stack = stack.0;
        entry.highest = highest;
        entry.depth = depth as u8;
        entry.count = read.len() as u8;
        entry.fp_matters = noted.fp_matters;
        entry.generation = generation;
    }
}

#[inline(always)]
fn holds(entry: &Entry) -> bool {
    let count = entry.count as usize;
    let (places, words) = (&entry.places[..count], &entry.words[..count]);
    // Eight independent loads at a time; a difference ends the check.
    places.chunks(8).zip(words.chunks(8)).all(|(places, words)| {
        let differences = places.iter().zip(words).fold(0, |all, (&place, &word)| {
            // SAFETY: the address is a multiple of 8 above the aligned stack pointer, and no higher
            // than `highest`. This place is on the thread's own stack, so the word is readable.
            all | (unsafe { word_at(entry.sp + place as usize * 8) } ^ word)
        });
        differences == 0
    })
}
