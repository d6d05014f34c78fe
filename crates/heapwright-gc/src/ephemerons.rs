//! Ephemerons whose keys have no mark yet: where they wait, and how a marked key finds them.
//!
//! ```text
//!   word 0   the key's slot
//!        1   the value's slot, in words from the key's | the number of the next with the same hash
//!
//!   chunk    | 0 | 1 | 2 | ... | 509 |  --full-->  chunk  | 510 | ...      numbered without gaps
//!   table    a number for each hash of a key: 4 bytes
//! ```
//!
//! Tracers put ephemerons into chunks ([`bag`](super::bag)), which then hold the waiting
//! ephemerons. During marking, an ephemeron costs 16 bytes, and up to 16 more if the table is
//! needed. Afterwards the chunks go back (see `mark_chunks`).
//!
//! In a chain, the value of each ephemeron is the key of the next. A chain takes time in proportion
//! to its length, whatever the order of reports (Hayes, "Ephemerons: a new finalization mechanism",
//! 1997). The table is as in Racket CS and V8. Without it, each round visits all. Part of `weak`.

use heapwright_substrate::chunk::Side;

use super::array::Array;
use super::bag;
use super::gang::{Chunk, ITEMS};

const IN_CHUNK: usize = ITEMS / 2;
/// How many ephemerons with one hash are looked at, to recognise an ephemeron that waits already.
const LOOKS: usize = 8;
const WORD: isize = size_of::<usize>() as isize;

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Noted {
    key: *mut *mut u8,
    value: i32,
    next: u32,
}

const _: () = assert!(size_of::<Noted>() == 2 * size_of::<usize>());

impl Noted {
    /// Makes an ephemeron of its slots. Returns `None` if they lie 16 GiB or more apart.
    pub(super) fn new(key: *mut *mut u8, value: *mut *mut u8) -> Option<Self> {
        let apart = value.addr().wrapping_sub(key.addr()).cast_signed() / WORD;
        i32::try_from(apart).ok().map(|value| Self { key, value, next: 0 })
    }

    /// A key's slot alone, which is also the value's slot.
    pub(super) fn of_key(key: *mut *mut u8) -> Self {
        Self { key, value: 0, next: 0 }
    }

    fn value_slot(self) -> *mut *mut u8 {
        self.key.wrapping_offset(self.value as isize)
    }

    pub(super) fn key(self) -> *mut u8 {
        // SAFETY: `trace` of a marked object reported the slot, so the slot exists until the sweep.
        unsafe { self.key.read() }
    }

    pub(super) fn value(self) -> *mut u8 {
        // SAFETY: `trace` of a marked object reported the slot, so the slot exists until the sweep.
        unsafe { self.value_slot().read() }
    }

    /// The number of the next ephemeron with the same hash, from 1, or 0 if there is none.
    pub(super) fn next(self) -> u32 {
        self.next
    }

    pub(super) fn clear(self) {
        for slot in [self.key, self.value_slot()] {
            // SAFETY: `trace` of a marked object reported the slot, and the world is stopped.
            unsafe { slot.write(core::ptr::null_mut()) };
        }
    }
}

pub(super) struct Waiting {
    chunks: Array<*mut Chunk>,
    count: usize,
    indexed: usize,
    /// How many ephemerons `find_dying` has visited. `dying`: the numbers of those with dead keys.
    visited: usize,
    dying: Array<u32>,
    /// For each hash of a key: the number of the first ephemeron, from 1.
    heads: Side,
    mask: usize,
}

// SAFETY: slots and chunks are memory of the heap. A lock around this orders all accesses.
unsafe impl Send for Waiting {}

impl Waiting {
    const NONE: Self = Self {
        chunks: Array::new(),
        count: 0,
        indexed: 0,
        visited: 0,
        dying: Array::new(),
        heads: Side::NONE,
        mask: 0,
    };

    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn at(&self, number: usize) -> *mut Noted {
        let chunk: *mut Chunk = self.chunks[number / IN_CHUNK];
        // SAFETY: the place is in bounds of the chunk, and nothing is read.
        let items = unsafe { &raw mut (*chunk).items };
        items.cast::<Noted>().wrapping_add(number % IN_CHUNK)
    }

    fn get(&self, number: usize) -> Noted {
        // SAFETY: the number is below the count, so its place was written.
        unsafe { self.at(number).read() }
    }

    fn set(&self, number: usize, ephemeron: Noted) {
        // SAFETY: the place is in one of the chunks.
        unsafe { self.at(number).write(ephemeron) };
    }

    /// Takes over the ephemerons of a chunk for which `waits` returns true. The chunk was taken
    /// from a bag. Without memory for an ephemeron, calls `refused`. If `again`, looks for
    /// ephemerons that wait already. Returns whether the chunk stays here, and about how many
    /// ephemerons wait already.
    pub(super) fn add(
        &mut self,
        chunk: *mut Chunk,
        again: bool,
        mut waits: impl FnMut(Noted) -> bool,
        mut refused: impl FnMut(Noted),
    ) -> (bool, usize) {
        let (mut kept, mut known) = (false, 0);
        bag::each(chunk, |ephemeron: Noted| {
            if !waits(ephemeron) {
                return;
            }
            if again && let Some(waits_already) = self.find(ephemeron) {
                known += 1;
                if waits_already {
                    return;
                }
            }
            if self.count == self.chunks.len() * IN_CHUNK {
                // The chunk itself holds the next waiting ephemerons. A place of the chunk is read
                // before it is overwritten.
                if kept || !self.chunks.push(chunk) {
                    return refused(ephemeron);
                }
                kept = true;
            }
            self.count += 1;
            self.set(self.count - 1, ephemeron);
        });
        (kept, known)
    }

    /// Returns whether an ephemeron waits already. Returns `None` if none with its hash does, and
    /// `Some(false)` if too many do.
    fn find(&self, ephemeron: Noted) -> Option<bool> {
        let mut number = self.first(ephemeron.key());
        for _ in 0..LOOKS {
            let entry = self.entry(number)?;
            if (entry.key, entry.value) == (ephemeron.key, ephemeron.value) {
                return Some(true);
            }
            number = entry.next();
        }
        Some(false)
    }

    pub(super) fn each(&self, with: impl FnMut(Noted)) {
        (0..self.count).map(|number| self.get(number)).for_each(with);
    }

    /// Visits up to `most` ephemerons that were not visited before, and notes those for which
    /// `is_dead` returns true. Returns whether none is left.
    pub(super) fn find_dying(&mut self, most: usize, is_dead: impl Fn(Noted) -> bool) -> bool {
        let end = self.count.min(self.visited + most);
        while self.visited < end {
            // Without memory for the note, `each_dying` visits all ephemerons from here on.
            if is_dead(self.get(self.visited)) && !self.dying.push(self.visited as u32) {
                return true;
            }
            self.visited += 1;
        }
        end == self.count
    }

    pub(super) fn each_dying(&self, mut with: impl FnMut(Noted)) {
        self.dying.iter().for_each(|&number| with(self.get(number as usize)));
        (self.visited..self.count).for_each(|number| with(self.get(number)));
    }

    /// Forgets all ephemerons. Calls `give` for each chunk.
    pub(super) fn empty(&mut self, give: impl FnMut(*mut Chunk)) {
        core::iter::from_fn(|| self.chunks.pop()).for_each(give);
        self.heads.give();
        self.dying.truncate(0);
        (self.count, self.indexed, self.visited, self.mask) = (0, 0, 0, 0);
    }

    fn place(&self, key: *mut u8) -> *mut u32 {
        let hash = (key.addr() >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.heads.at().cast::<u32>().wrapping_add(hash & self.mask)
    }

    /// Makes a table for `count` ephemerons. Returns false without memory for a table.
    pub(super) fn expect(&mut self, count: usize) -> bool {
        self.heads.give();
        self.indexed = 0;
        let places = count.max(1024).next_power_of_two();
        let Some(heads) = Side::take(places * size_of::<u32>()) else { return false };
        (self.heads, self.mask) = (heads, places - 1);
        true
    }

    pub(super) fn index(&mut self) -> bool {
        let small = self.heads.at().is_null() || self.count > 4 * (self.mask + 1);
        if small && !self.expect(2 * self.count) {
            return false;
        }
        for number in self.indexed..self.count {
            let ephemeron = self.get(number);
            let place = self.place(ephemeron.key());
            // SAFETY: the place is in the table, which is zeroed at first.
            let next = unsafe { place.read() };
            self.set(number, Noted { next, ..ephemeron });
            // SAFETY: the place is in the table, which is the caller's alone.
            unsafe { place.write(number as u32 + 1) };
        }
        self.indexed = self.count;
        true
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.indexed == self.count
    }

    /// The number of the first ephemeron with the hash of this key, from 1, or 0 if there is none.
    pub(super) fn first(&self, key: *mut u8) -> u32 {
        if self.heads.at().is_null() {
            return 0;
        }
        // SAFETY: the place is in the table.
        unsafe { self.place(key).read() }
    }

    pub(super) fn entry(&self, number: u32) -> Option<Noted> {
        let number = number.checked_sub(1)? as usize;
        (number < self.count).then(|| self.get(number))
    }

    /// Frees the lists and the table. The caller frees the chunks.
    pub(super) fn end(&mut self) {
        self.chunks.end();
        self.dying.end();
        self.heads.give();
        *self = Self::NONE;
    }
}
