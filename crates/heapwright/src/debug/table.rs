//! The table: records of blocks that lie in another allocator's memory.
//!
//! ```text
//!   address --hash--> chain --> record, 48 bytes: place, size, stacks, threads, state
//!
//!   UNUSED --insert--> LIVE --claim--> FREEING --quarantine--> QUARANTINED --oldest--> LEAVING
//!     ^                                                                                   |
//!     +------- forgotten, or its address was handed out again <---------- GONE <----------+
//! ```
//!
//! The address map does not know such memory, and a header before the block could not be trusted.
//! So a hash table in guarded memory leads from a block to its record.
//!
//! `GONE` blocks went back to their allocator, and are remembered so that a late double free is
//! reported as a double free. The table stores the complement of a block's address, so that a
//! search for pointers does not find the address here. Called by `checked` and `heap`, under the
//! table's lock. `reach` and `leaks` call [`room`] and [`give_room`].

use core::ptr;

use heapwright_record::debug::Moment;

use crate::os::SYSTEM;
use crate::os::{self, Memory};
use crate::segments;

/// Records in the first segment. Each further segment is twice as long as the one before.
const FIRST: usize = 256;
const SEGMENTS: usize = 24;
const NONE: u32 = u32::MAX;
const GONE_MOST: usize = if cfg!(miri) { 32 } else { 4096 };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    Unused = 0,
    Live,
    Freeing,
    Quarantined,
    /// Out of the quarantine, in its last check.
    Leaving,
    /// The block's memory went back.
    Gone,
    /// The address was handed out again, but the record is still in a list.
    Stale,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    complement: *mut u8,
    pub(super) size: usize,
    made_at: u32,
    freed_at: u32,
    made: u32,
    freed: u32,
    /// The next record of its chain, and of its list.
    chain: u32,
    list: u32,
    pub(super) made_by: u16,
    freed_by: u16,
    align: u8,
    pub(super) state: State,
}

const _: () = assert!(size_of::<Entry>() == 48 || size_of::<usize>() != 8);

impl Entry {
    /// Returns the block's first byte, with its original provenance.
    pub(super) fn block(&self) -> *mut u8 {
        self.complement.map_addr(|address| !address)
    }

    pub(super) const fn align(&self) -> usize {
        1 << self.align
    }

    pub(super) const fn before(self) -> Self {
        Self { state: State::Live, ..self }
    }

    pub(super) fn is_freed(&self) -> bool {
        !matches!(self.state, State::Live | State::Unused)
    }

    pub(super) fn allocated(&self) -> Moment {
        moment(self.made_at, self.made_by, self.made)
    }

    pub(super) fn was_freed(&self) -> Moment {
        if self.is_freed() {
            moment(self.freed_at, self.freed_by, self.freed)
        } else {
            Moment::default()
        }
    }
}

fn moment(stack: u32, thread: u16, sequence: u32) -> Moment {
    Moment { stack, thread: u32::from(thread), sequence: u64::from(sequence), ns: 0 }
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
    count: usize,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE, count: 0 };
}

/// The result of a claim: the block that a freed pointer leads to.
pub(super) enum Claim {
    Taken(u32, Entry),
    /// The start of a block that was freed before.
    Freed(Entry),
    Inside(Entry),
    Unknown,
}

pub(super) struct Table {
    chains: *mut u32,
    chain_bits: u32,
    segments: [*mut Entry; SEGMENTS],
    made: u32,
    unused: u32,
    quarantined: List,
    gone: List,
    resting_bytes: usize,
    pub(super) live: usize,
    pub(super) live_bytes: usize,
    pub(super) handed_out: u64,
    pub(super) taken_back: u64,
}

// SAFETY: only the table's holder uses the memory behind the pointers; blocks are not touched.
unsafe impl Send for Table {}

/// Returns zeroed memory between two guards, or null.
pub(super) fn room(bytes: usize) -> *mut u8 {
    let page = SYSTEM.page_size();
    let bytes = bytes.next_multiple_of(page);
    let at = SYSTEM.reserve(bytes + 2 * page, page);
    if at.is_null() {
        return at;
    }
    // SAFETY: just reserved.
    unsafe { os::keep_out_of_dumps(at, bytes + 2 * page) };
    let start = at.wrapping_add(page);
    // SAFETY: these are whole pages inside the new reservation.
    if unsafe { SYSTEM.commit(start, bytes) } {
        return start;
    }
    // SAFETY: just reserved, and no other code has it.
    unsafe { SYSTEM.release(at, bytes + 2 * page) };
    ptr::null_mut()
}

/// Releases memory from [`room`].
///
/// # Safety
///
/// `at` is from [`room`] with these `bytes`, and no code uses it.
pub(super) unsafe fn give_room(at: *mut u8, bytes: usize) {
    let page = SYSTEM.page_size();
    let bytes = bytes.next_multiple_of(page);
    // SAFETY: the caller passes memory from `room`, which has a guard on either side.
    unsafe { SYSTEM.release(at.wrapping_sub(page), bytes + 2 * page) };
}

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            chains: ptr::null_mut(),
            chain_bits: 0,
            segments: [ptr::null_mut(); SEGMENTS],
            made: 0,
            unused: NONE,
            quarantined: List::EMPTY,
            gone: List::EMPTY,
            resting_bytes: 0,
            live: 0,
            live_bytes: 0,
            handed_out: 0,
            taken_back: 0,
        }
    }

    /// Returns the number of records made so far. All indices are below this number.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    fn at(&self, index: u32) -> *mut Entry {
        let (segment, index) = segments::place(index as usize, FIRST);
        self.segments[segment].wrapping_add(index)
    }

    pub(super) fn get(&self, index: u32) -> Entry {
        // SAFETY: indices in chains and lists are of records that were made.
        unsafe { self.at(index).read() }
    }

    fn change(&mut self, index: u32, change: impl FnOnce(&mut Entry)) {
        // SAFETY: an index in a chain belongs to an existing record, and the table is the caller's.
        change(unsafe { &mut *self.at(index) });
    }

    fn chain_of(&self, address: usize) -> *mut u32 {
        let hash = (address as u64 / 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.chains.wrapping_add((hash >> (64 - self.chain_bits)) as usize)
    }

    fn first_of(&self, address: usize) -> u32 {
        if self.chains.is_null() {
            return NONE;
        }
        // SAFETY: the index is in the chains.
        unsafe { self.chain_of(address).read() }
    }

    fn find(&self, address: usize) -> Option<u32> {
        let mut index = self.first_of(address);
        while index != NONE {
            let entry = self.get(index);
            if entry.block().addr() == address {
                return Some(index);
            }
            index = entry.chain;
        }
        None
    }

    fn enter(&mut self, index: u32) {
        let address = self.get(index).block().addr();
        let first = self.first_of(address);
        self.change(index, |entry| entry.chain = first);
        // SAFETY: the index is in the chains.
        unsafe { self.chain_of(address).write(index) };
    }

    fn leave(&mut self, index: u32) {
        let gone = self.get(index);
        let address = gone.block().addr();
        let mut at = self.first_of(address);
        if at == index {
            // SAFETY: the index is in the chains.
            return unsafe { self.chain_of(address).write(gone.chain) };
        }
        while at != NONE {
            let next = self.get(at).chain;
            if next == index {
                return self.change(at, |entry| entry.chain = gone.chain);
            }
            at = next;
        }
    }

    /// Doubles the chains, to at least one for each record. Returns false if the table has none.
    fn grow(&mut self) -> bool {
        let bits = (self.chain_bits + 1).max(9);
        let chains: *mut u32 = room(size_of::<u32>() << bits).cast();
        if chains.is_null() {
            // Without memory the chains become longer.
            return !self.chains.is_null();
        }
        // SAFETY: the memory has this many bytes; all ones mean no record.
        unsafe { chains.cast::<u8>().write_bytes(0xff, size_of::<u32>() << bits) };
        let (old, old_bits) = (self.chains, self.chain_bits);
        (self.chains, self.chain_bits) = (chains, bits);
        if !old.is_null() {
            for index in 0..self.made {
                let state = self.get(index).state;
                if !matches!(state, State::Unused | State::Stale) {
                    self.enter(index);
                }
            }
            // SAFETY: made above, in an earlier call, with these bytes.
            unsafe { give_room(old.cast(), size_of::<u32>() << old_bits) };
        }
        true
    }

    fn take(&mut self) -> Option<u32> {
        if self.unused != NONE {
            let index = self.unused;
            self.unused = self.get(index).list;
            return Some(index);
        }
        let index = self.made;
        let (segment, _) = segments::place(index as usize, FIRST);
        let place = self.segments.get(segment)?;
        if place.is_null() {
            let fresh = room((FIRST << segment) * size_of::<Entry>());
            if fresh.is_null() {
                return None;
            }
            self.segments[segment] = fresh.cast();
        }
        if (self.chains.is_null() || index as usize >= 1 << self.chain_bits) && !self.grow() {
            return None;
        }
        self.made += 1;
        Some(index)
    }

    fn give(&mut self, index: u32) {
        let next = self.unused;
        self.change(index, |entry| {
            entry.state = State::Unused;
            entry.list = next;
        });
        self.unused = index;
    }

    /// Adds a block that is handed out. Returns false without memory for its record.
    pub(super) fn insert(&mut self, block: *mut u8, size: usize, align: usize, by: Moment) -> bool {
        if let Some(old) = self.find(block.addr()) {
            self.leave(old);
            let entry = self.get(old);
            if entry.state == State::Live {
                // The block's allocator released all memory at once.
                self.live -= 1;
                self.live_bytes -= entry.size;
                self.give(old);
            } else {
                self.change(old, |entry| entry.state = State::Stale);
            }
        }
        let Some(index) = self.take() else { return false };
        let entry = Entry {
            complement: block.map_addr(|address| !address),
            size,
            made_at: by.stack,
            freed_at: 0,
            made: by.sequence as u32,
            freed: 0,
            chain: NONE,
            list: NONE,
            made_by: by.thread as u16,
            freed_by: 0,
            align: align.trailing_zeros() as u8,
            state: State::Live,
        };
        // SAFETY: the record is made, and in no list.
        unsafe { self.at(index).write(entry) };
        self.enter(index);
        self.live += 1;
        self.live_bytes += size;
        self.handed_out += 1;
        true
    }

    pub(super) fn live_at(&self, address: usize) -> Option<Entry> {
        let entry = self.get(self.find(address)?);
        (entry.state == State::Live).then_some(entry)
    }

    pub(super) fn claim(&mut self, address: usize, by: Moment) -> Claim {
        let Some(index) = self.find(address) else {
            let inside = |entry: &Entry| {
                !matches!(entry.state, State::Unused | State::Stale | State::Gone)
                    && address.wrapping_sub(entry.block().addr()) < entry.size
            };
            let found = (0..self.made).map(|index| self.get(index)).find(inside);
            return found.map_or(Claim::Unknown, Claim::Inside);
        };
        let entry = self.get(index);
        if entry.state != State::Live {
            return Claim::Freed(entry);
        }
        self.change(index, |entry| {
            entry.state = State::Freeing;
            entry.freed_at = by.stack;
            entry.freed_by = by.thread as u16;
            entry.freed = by.sequence as u32;
        });
        self.live -= 1;
        self.live_bytes -= entry.size;
        self.taken_back += 1;
        Claim::Taken(index, self.get(index))
    }

    fn push(&mut self, which: fn(&mut Self) -> &mut List, index: u32) {
        self.change(index, |entry| entry.list = NONE);
        let last = which(self).last;
        if last == NONE {
            which(self).first = index;
        } else {
            self.change(last, |entry| entry.list = index);
        }
        let list = which(self);
        list.last = index;
        list.count += 1;
    }

    fn pop(&mut self, which: fn(&mut Self) -> &mut List) -> Option<u32> {
        let index = which(self).first;
        if index == NONE {
            return None;
        }
        let next = self.get(index).list;
        let list = which(self);
        list.first = next;
        if next == NONE {
            list.last = NONE;
        }
        list.count -= 1;
        Some(index)
    }

    pub(super) fn quarantine(&mut self, index: u32, cost: usize) {
        // The block's allocator may have handed the block out again meanwhile.
        if self.get(index).state == State::Freeing {
            self.change(index, |entry| entry.state = State::Quarantined);
            self.push(|table| &mut table.quarantined, index);
            self.resting_bytes += cost;
        }
    }

    /// Returns the quarantine's oldest block, if the quarantine costs more than `budget` bytes.
    pub(super) fn oldest(
        &mut self,
        budget: usize,
        cost: impl Fn(&Entry) -> usize,
    ) -> Option<(u32, Entry)> {
        while self.resting_bytes > budget {
            let index = self.pop(|table| &mut table.quarantined)?;
            let entry = self.get(index);
            self.resting_bytes -= cost(&entry);
            if entry.state == State::Quarantined {
                self.change(index, |entry| entry.state = State::Leaving);
                return Some((index, entry));
            }
            self.give(index);
        }
        None
    }

    /// Notes that a block out of the quarantine goes back to its allocator.
    pub(super) fn is_gone(&mut self, index: u32) {
        self.change(index, |entry| entry.state = State::Gone);
        self.push(|table| &mut table.gone, index);
        while self.gone.count > GONE_MOST
            && let Some(oldest) = self.pop(|table| &mut table.gone)
        {
            if self.get(oldest).state == State::Gone {
                self.leave(oldest);
            }
            self.give(oldest);
        }
    }

    pub(super) fn clear(&mut self) {
        if !self.chains.is_null() {
            // SAFETY: made by `grow` with these bytes.
            unsafe { give_room(self.chains.cast(), size_of::<u32>() << self.chain_bits) };
        }
        for (segment, &at) in self.segments.iter().enumerate() {
            if !at.is_null() {
                // SAFETY: made by `take` with these bytes.
                unsafe { give_room(at.cast(), (FIRST << segment) * size_of::<Entry>()) };
            }
        }
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(crate::cases::cases(60))]

        #[test]
        fn a_table_knows_what_a_map_knows(
            steps in proptest::collection::vec((0u8..4, 1usize..if cfg!(miri) { 40 } else { 600 }), 1..if cfg!(miri) { 60 } else { 3000 }),
        ) {
            let mut table = Table::new();
            let mut states: HashMap<usize, State> = HashMap::new();
            let mut leaving = std::vec::Vec::new();
            for (what, block) in steps {
                let address = block * 64;
                let state = states.get(&address).copied();
                match what {
                    0 if !matches!(state, Some(State::Live | State::Quarantined)) => {
                        let block = ptr::without_provenance_mut(address);
                        prop_assert!(table.insert(block, 40, 8, moment(3, 4, 5)));
                        states.insert(address, State::Live);
                    }
                    1 => match (table.claim(address, moment(1, 2, 3)), state) {
                        (Claim::Taken(index, entry), Some(State::Live)) => {
                            prop_assert_eq!((entry.block().addr(), entry.size, entry.align()), (address, 40, 8));
                            prop_assert_eq!((entry.allocated().stack, entry.was_freed().thread), (3, 2));
                            table.quarantine(index, 100);
                            states.insert(address, State::Quarantined);
                            leaving.push(address);
                        }
                        (Claim::Freed(entry), Some(state)) => prop_assert_eq!(entry.state, state),
                        (Claim::Unknown, None) => {}
                        _ => prop_assert!(false, "{address:#x} is {state:?}"),
                    },
                    2 => prop_assert!(matches!(
                        (table.claim(address + 12, moment(0, 0, 0)), state),
                        (Claim::Inside(_), Some(State::Live | State::Quarantined)) | (Claim::Unknown, None | Some(State::Gone))
                    )),
                    _ => if let Some((index, entry)) = table.oldest(1000, |_| 100) {
                        prop_assert_eq!(entry.block().addr(), leaving.remove(0));
                        table.is_gone(index);
                        states.insert(entry.block().addr(), State::Gone);
                    },
                }
                if table.gone.count >= GONE_MOST {
                    break;
                }
            }
            let live = states.values().filter(|&&state| state == State::Live).count();
            prop_assert_eq!((table.live, table.live_bytes), (live, live * 40));
            table.clear();
        }
    }

    #[test]
    fn only_so_many_that_are_gone_are_remembered() {
        let mut table = Table::new();
        for block in 1..GONE_MOST + 100 {
            let at = ptr::without_provenance_mut(block * 64);
            assert!(table.insert(at, 1, 1, Moment::default()));
            let Claim::Taken(index, _) = table.claim(block * 64, Moment::default()) else {
                panic!()
            };
            table.quarantine(index, 1);
            let (index, _) = table.oldest(0, |_| 1).unwrap();
            table.is_gone(index);
        }
        assert!(matches!(table.claim(64, Moment::default()), Claim::Unknown));
        assert!(matches!(table.claim(64 * (GONE_MOST + 99), Moment::default()), Claim::Freed(_)));
        assert!(table.made() as usize <= GONE_MOST + 2);
        table.clear();
    }
}
