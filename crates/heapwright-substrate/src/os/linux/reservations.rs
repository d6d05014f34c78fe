//! Reservations: those that heapwright made for itself, so that a leak check
//! does not take its records for the program's pointers.
//!
//! ```text
//!   table    | start, end | start, end | 0, 0 | ...        256 places, any order
//! ```
//!
//! A reservation has a place while it is there. Where there is none left, one is not
//! noted, and what it holds counts as the program's: blocks may then look reachable
//! that are not, and none looks lost that is not. The window is not listed here: the map
//! knows it.

use core::sync::atomic::{AtomicUsize, Ordering};

static TABLE: [(AtomicUsize, AtomicUsize); 256] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 256];

/// A reservation was made.
pub(super) fn note(at: usize, size: usize) {
    for (start, end) in &TABLE {
        let taken = start.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            end.store(at + size, Ordering::Release);
            return;
        }
    }
}

/// A reservation was made, perhaps right behind one that is known.
pub(super) fn note_more(at: usize, size: usize) {
    for (_, end) in &TABLE {
        let joined = end.compare_exchange(at, at + size, Ordering::AcqRel, Ordering::Relaxed);
        if joined.is_ok() {
            return;
        }
    }
    note(at, size);
}

/// A range is given up: of a reservation that it is a part of, what is before it stays
/// ours, or else what is behind it.
pub(super) fn forget(at: usize, size: usize) {
    let to = at + size;
    for (start, end) in &TABLE {
        let (from, until) = (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed));
        if at >= until || to <= from {
            continue;
        }
        if from < at {
            end.store(at, Ordering::Release);
        } else if to < until {
            start.store(to, Ordering::Release);
        } else {
            end.store(0, Ordering::Relaxed);
            start.store(0, Ordering::Release);
        }
    }
}

/// The end of the reservation that an address is in, if it is in one.
pub fn is_own(address: usize) -> Option<usize> {
    TABLE.iter().find_map(|(start, end)| {
        let (start, end) = (start.load(Ordering::Acquire), end.load(Ordering::Acquire));
        (start <= address && address < end).then_some(end)
    })
}

/// Where the next reservation behind an address begins; 0 where none does.
pub fn next_own(address: usize) -> usize {
    let starts = TABLE.iter().map(|(start, _)| start.load(Ordering::Acquire));
    starts.filter(|&start| start > address).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::{Memory, System};
    use super::*;

    #[test]
    fn a_reservation_is_ours_while_it_is_there() {
        let at = System.reserve(1 << 20, 4096);
        assert_eq!(is_own(at.addr()), Some(at.addr() + (1 << 20)));
        assert_eq!(is_own(at.addr() + (1 << 20) - 1), Some(at.addr() + (1 << 20)));
        // SAFETY: made above, and nobody uses it.
        unsafe { System.release(at.wrapping_add(1 << 19), 1 << 19) };
        assert_eq!(is_own(at.addr()), Some(at.addr() + (1 << 19)));
        assert_eq!(is_own(at.addr() + (1 << 19)), None);
        // SAFETY: reserved by the test, and nobody uses it.
        unsafe { System.release(at, 1 << 19) };
        assert_eq!(is_own(at.addr()), None);
    }

    #[test]
    fn what_follows_a_reservation_joins_it() {
        let at = System.reserve(2 << 20, 4096).addr();
        forget(at + (1 << 20), 1 << 20);
        note_more(at + (1 << 20), 1 << 20);
        assert_eq!(is_own(at), Some(at + (2 << 20)));
        assert_eq!(is_own(at + (2 << 20)), None);
        // SAFETY: made above, and nobody uses it.
        unsafe { System.release(core::ptr::without_provenance_mut(at), 2 << 20) };
        assert_eq!(is_own(at), None);
    }
}
