extern crate std;

use std::vec::Vec;

use super::*;

impl RunIndex {
    /// All runs. Asserts that each is in the bin of its length, and that the bitmap is right.
    pub(crate) fn all(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (number, bin) in self.bins.iter().enumerate() {
            assert_eq!(self.nonempty >> number & 1 == 1, bin.first().is_some(), "bin {number}");
            let mut at = bin.first();
            while let Some(unit) = at {
                let units = Self::length(self.map, unit);
                assert_eq!(bin_of(units), number, "a run of {units} units");
                found.push((unit, units));
                at = bin.after(self.map, unit);
            }
        }
        found
    }

    /// Whether `find` must find a run of this length. It may miss some in a bin of many lengths.
    pub(crate) fn must_find(units: usize, length: usize) -> bool {
        length == units && units <= EXACT || bin_of(length) > bin_of(units)
    }
}

#[test]
fn bins_are_monotonic_and_in_range() {
    let mut last = 0;
    for units in (1..=(1 << 16)).step_by(if cfg!(miri) { 211 } else { 1 }) {
        let bin = bin_of(units);
        assert!(bin >= last && bin < BINS);
        last = bin;
    }
    assert!(bin_of(16) == 15 && bin_of(17) == 16 && bin_of(1 << 24) < BINS);
}

#[test]
fn a_run_of_a_higher_bin_always_fits() {
    let most = if cfg!(miri) { 80 } else { 5000 };
    for units in 1..most {
        for length in 1..most {
            assert!(bin_of(length) <= bin_of(units) || length >= units);
        }
    }
}
