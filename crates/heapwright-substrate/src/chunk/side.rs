//! Side memory: a run of units, zeroed at first, for records about other memory.
//!
//! ```text
//!   take(bytes) --> | zeroes ........ |     whole units, marked `METADATA`
//! ```
//!
//! Unlike [`metadata`](super::metadata), side memory goes back when its owner ends. Called by
//! `pool` (segments, their slot sets and leases; keys), `registry` (blocks of places), `gc`
//! (tables, lists and buffers of a collected heap) and realms (names of types, which stay).

use core::ptr;

use super::Want;
use crate::address_map::{Entry, MAP};
use crate::size_class::UNIT;
use crate::sync::atomic::Ordering;

/// A run of units for records.
#[derive(Clone, Copy)]
pub struct Side {
    at: *mut u8,
    unit: usize,
    units: usize,
}

impl Side {
    /// No run.
    pub const NONE: Self = Self { at: ptr::null_mut(), unit: 0, units: 0 };

    /// `bytes` bytes of zeroes. `None`: there is no memory.
    pub fn take(bytes: usize) -> Option<Self> {
        let units = bytes.div_ceil(UNIT);
        let run = super::take(units, 1, Want::Zero, Entry::METADATA, |_| Entry::METADATA)?;
        let at = MAP.address_of(run.unit);
        if !run.zero {
            // SAFETY: the run was just taken; no other thread knows it.
            unsafe { ptr::write_bytes(at, 0, bytes) };
        }
        Some(Self { at, unit: run.unit, units })
    }

    /// The run's first byte; null: there is no run.
    #[inline]
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Gives the run at `at` back, unless `at` is null.
    pub fn give_at(at: *mut u8) {
        if !at.is_null() {
            let unit = MAP.unit_of(at.addr());
            super::give(unit, MAP.record(unit).units.load(Ordering::Relaxed) as usize);
        }
    }

    /// Gives the run back, if there is one.
    pub fn give(&mut self) {
        if self.units > 0 {
            super::give(self.unit, self.units);
        }
        *self = Self::NONE;
    }
}
