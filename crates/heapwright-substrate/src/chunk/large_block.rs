//! A large block's usable bytes, and the tail behind them.
//!
//! ```text
//!   large block    | in use, whole pages | tail |  --cut-->  | in use | nothing |
//!                    unit 0      unit 1
//! ```
//!
//! If address space is limited, large blocks and kept runs lose their tails before a request is
//! refused (`address_limit`). The bit `CUT` in the record's `usable` means that nothing is mapped
//! behind the bytes in use. Only the holder of the chunk's lock changes `CUT`. While `CUT` is
//! clear, the owner changes `usable` without the lock, by a compare-and-exchange that fails if a
//! cut came first. Other modules call the public functions without the lock.

use super::Chunk;
use super::address_limit::MOST_HOLES;
use super::process::CHUNK;
use crate::address_map::{Entry, HARDENED, Kind, MAP};
use crate::os::Memory;
use crate::size_class::UNIT;
use crate::sync::atomic::{Ordering, fence};
use crate::unit_record::Record;

const CUT: usize = 1 << (usize::BITS - 1);

/// Bytes of the record's large block that the program may use.
#[inline]
pub fn usable(record: &Record) -> usize {
    record.usable.load(Ordering::Relaxed) & !CUT
}

/// Whether the caller's large block has room for `size` bytes as it is, without much waste.
#[inline]
pub fn is_usable(record: &Record, size: usize) -> bool {
    // This comparison also fails for a cut block.
    record.usable.load(Ordering::Relaxed).wrapping_sub(size) < UNIT + size / 4
}

/// [`is_usable`] for a block whose run has exactly the units that `size` bytes need.
#[inline]
pub fn is_usable_as_long(record: &Record, size: usize) -> bool {
    record.usable.load(Ordering::Relaxed).wrapping_sub(size) < UNIT
}

/// Sets the usable bytes (whole pages) of the caller's large block at `unit`. A cut block gets no
/// fewer bytes. False: the tail was cut, and there is no address space for more bytes.
#[inline]
pub fn set_usable(unit: usize, usable: usize) -> bool {
    MAP.record(unit).usable.load(Ordering::Relaxed) == usable || change_usable(unit, usable)
}

#[inline(never)]
fn change_usable(unit: usize, usable: usize) -> bool {
    let record = MAP.record(unit);
    let mut before = record.usable.load(Ordering::Relaxed);
    while before & CUT == 0 {
        let set =
            record.usable.compare_exchange(before, usable, Ordering::Relaxed, Ordering::Relaxed);
        match set {
            Ok(_) => return true,
            Err(other) => before = other,
        }
    }
    if usable <= before & !CUT {
        return true;
    }
    let mut chunk = CHUNK.lock();
    let mended = chunk.mend_tail(unit);
    if mended {
        record.usable.store(usable, Ordering::Relaxed);
    }
    mended
}

pub(super) fn set_usable_locked(record: &Record, usable: usize) {
    // A cut block keeps its earlier size.
    if record.usable.load(Ordering::Relaxed) & CUT == 0 {
        record.usable.store(usable, Ordering::Relaxed);
    }
}

impl<O: Memory + Copy> Chunk<O> {
    /// Cuts tails, up to `MOST_HOLES`. Returns whether any was cut. Visits units to the frontier.
    pub(super) fn cut_tails(&mut self) -> bool {
        if !self.window.is_limited() {
            return false;
        }
        let before = self.cut;
        for unit in 1..self.window.frontier() {
            // SAFETY: units below the frontier are below the map's limit.
            if unsafe { self.map.entry(unit) }.kind() == Kind::LargeHead && self.cut < MOST_HOLES {
                self.cut_tail(unit);
            }
        }
        self.cut > before
    }

    fn cut_tail(&mut self, unit: usize) {
        // The record is read after the entry.
        fence(Ordering::Acquire);
        let record = self.map.record(unit);
        let size = record.units.load(Ordering::Relaxed) as usize * UNIT;
        let used = record.usable.load(Ordering::Relaxed);
        if used >= size || record.heap.load(Ordering::Relaxed) == HARDENED {
            return;
        }
        let cut =
            record.usable.compare_exchange(used, used | CUT, Ordering::Relaxed, Ordering::Relaxed);
        if cut.is_ok() {
            let tail = self.map.address_of(unit).wrapping_add(used);
            // SAFETY: the tail is committed, in whole pages, and behind the bytes in use. The owner
            // sees the cut before it uses more, and then waits for the lock.
            if unsafe { self.window.give_back(tail, size - used) } {
                self.cut += 1;
            } else {
                // The kernel allows no more mappings.
                record.usable.store(used, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn mend_tail(&mut self, unit: usize) -> bool {
        let record = self.map.record(unit);
        let used = record.usable.load(Ordering::Relaxed);
        if used & CUT == 0 {
            return true;
        }
        let used = used & !CUT;
        let size = record.units.load(Ordering::Relaxed) as usize * UNIT;
        let mended =
            self.window.get_back(self.map.address_of(unit).wrapping_add(used), size - used);
        if mended {
            record.usable.store(used, Ordering::Relaxed);
            self.cut -= 1;
        }
        mended
    }

    /// Gives up the cut tail of a run of `units` units, before the caller gives back all units but
    /// the first `keep`. Returns the number of units that the caller still has. The units behind
    /// these are free already.
    pub(super) fn settle_tail(&mut self, unit: usize, units: usize, keep: usize) -> usize {
        let record = self.map.record(unit);
        let used = record.usable.load(Ordering::Relaxed);
        if used & CUT == 0 {
            return units;
        }
        let used = used & !CUT;
        let mut whole = used.div_ceil(UNIT);
        if whole <= keep && used < keep * UNIT {
            // The cut begins in a unit that the caller keeps, so it stays.
            whole = keep;
        } else {
            self.cut -= 1;
            record.usable.store(used, Ordering::Relaxed);
            let hole = self.map.address_of(unit).wrapping_add(used);
            let rest = whole * UNIT - used;
            if rest > 0 && !self.window.get_back(hole, rest) {
                // The hole begins in this unit, so the rest of the unit is unmapped, too.
                whole -= 1;
                let left = self.map.address_of(unit + whole);
                // SAFETY: these are the last mapped bytes of the run, which no thread uses.
                let gone = unsafe { self.window.give_back(left, used - whole * UNIT) };
                debug_assert!(gone, "the end of a mapping, which splits none");
            }
        }
        if whole < units {
            self.map.set_entries(unit + whole, units - whole, Entry::FREE);
            self.insert_absent(unit + whole, units - whole);
            self.taken -= units - whole;
        }
        whole
    }
}
