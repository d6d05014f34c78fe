//! Free runs of units, indexed by size.
//!
//! ```text
//!   bin      0 .. 15     runs of exactly 1 .. 16 units
//!   bin     16 ..        four bins for each doubling above
//!
//!   a free run   | first unit | ... | last unit |
//!   records      units, state         units, state     (boundary tags)
//! ```
//!
//! This is two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF", 2004). A bitmap of
//! non-empty bins finds a run in constant time, and boundary tags find the neighbours to merge
//! with. Runs of one size are reused newest first.
//!
//! Invariants: a free run is in one index, unless its pages are going back now; both its tags
//! agree; the entries of all its units are `FREE`. Only `chunk` calls this module, under its lock.

use crate::address_map::AddressMap;
use crate::sync::atomic::Ordering;
use crate::unit_list::{BySize, UnitList};

const EXACT: usize = 16;
const BINS: usize = EXACT + (24 - 4 + 1) * 4;
const LOOKS: usize = 8;

const fn bin_of(units: usize) -> usize {
    if units <= EXACT {
        return units - 1;
    }
    let top = (usize::BITS - 1 - units.leading_zeros()) as usize;
    EXACT + (top - 4) * 4 + ((units >> (top - 2)) & 3)
}

const _: () = assert!(bin_of(1 << 24) < BINS && BINS <= 128);

/// The contents of a free run's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    /// Zeroes.
    Clean,
    /// Anything.
    Dirty,
    /// Nothing: the memory is not accessible (see `address_limit`).
    Absent,
}

pub(super) struct RunIndex {
    map: &'static AddressMap,
    state: State,
    nonempty: u128,
    bins: [UnitList<BySize>; BINS],
    units: usize,
    runs: usize,
}

impl RunIndex {
    pub(super) const fn new(map: &'static AddressMap, state: State) -> Self {
        Self { map, state, nonempty: 0, bins: [const { UnitList::new() }; BINS], units: 0, runs: 0 }
    }

    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    pub(super) fn units(&self) -> usize {
        self.units
    }

    pub(super) fn length(map: &AddressMap, unit: usize) -> usize {
        map.record(unit).units.load(Ordering::Relaxed) as usize
    }

    pub(super) fn insert(&mut self, unit: usize, units: usize) {
        for tag in [unit, unit + units - 1] {
            let record = self.map.record(tag);
            record.units.store(units as u32, Ordering::Relaxed);
            record.state.store(self.state as u8, Ordering::Relaxed);
        }
        let bin = bin_of(units);
        self.bins[bin].push(self.map, unit);
        self.nonempty |= 1 << bin;
        self.units += units;
        self.runs += 1;
    }

    pub(super) fn remove(&mut self, unit: usize) -> usize {
        let units = Self::length(self.map, unit);
        let bin = bin_of(units);
        self.bins[bin].remove(self.map, unit);
        if self.bins[bin].first().is_none() {
            self.nonempty &= !(1 << bin);
        }
        self.units -= units;
        self.runs -= 1;
        units
    }

    pub(super) fn any(&self) -> Option<usize> {
        (self.nonempty != 0).then(|| self.bins[self.nonempty.trailing_zeros() as usize].first())?
    }

    /// Runs and their lengths, from the longest to the shortest, nearly in order.
    pub(super) fn longest(&self) -> impl Iterator<Item = (usize, usize)> {
        let bins = self.bins.iter().enumerate().rev();
        bins.filter(|(bin, _)| self.nonempty >> bin & 1 == 1).flat_map(|(_, bin)| {
            let next = |&unit: &usize| bin.after(self.map, unit);
            core::iter::successors(bin.first(), next)
                .map(|unit| (unit, Self::length(self.map, unit)))
        })
    }

    /// A run of at least `units` units, and nearly the smallest of these.
    pub(super) fn find(&self, units: usize) -> Option<usize> {
        let own = bin_of(units);
        let mut best: Option<(usize, usize)> = None;
        let mut at = self.bins[own].first();
        for _ in 0..LOOKS {
            let Some(unit) = at else { break };
            let length = Self::length(self.map, unit);
            if length == units {
                return Some(unit);
            }
            if length > units && best.is_none_or(|(_, shortest)| length < shortest) {
                best = Some((unit, length));
            }
            at = self.bins[own].after(self.map, unit);
        }
        if let Some((unit, _)) = best {
            return Some(unit);
        }
        let larger = self.nonempty & !(u128::MAX >> (127 - own));
        (larger != 0).then(|| self.bins[larger.trailing_zeros() as usize].first())?
    }
}

#[cfg(test)]
mod tests;
