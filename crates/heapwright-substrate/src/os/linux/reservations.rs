//! Reservations that heapwright made for itself. A leak check skips their contents.
//!
//! ```text
//!   table    | start, end | start, end | 0, 0 | ...        256 places, any order
//! ```
//!
//! If no place is left, a reservation's content counts as the program's. Then lost blocks may look
//! reachable, but no reachable block looks lost. A window that was reserved at a given address (a
//! piecewise or scattered one) is not in the table: the address map covers it.

use core::sync::atomic::{AtomicUsize, Ordering};

static TABLE: [(AtomicUsize, AtomicUsize); 256] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 256];

pub(super) fn note(at: usize, size: usize) {
    for (start, end) in &TABLE {
        let taken = start.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            end.store(at + size, Ordering::Release);
            return;
        }
    }
}

pub(super) fn note_more(at: usize, size: usize) {
    for (_, end) in &TABLE {
        let joined = end.compare_exchange(at, at + size, Ordering::AcqRel, Ordering::Relaxed);
        if joined.is_ok() {
            return;
        }
    }
    note(at, size);
}

/// Removes a range. A reservation that overlaps the range keeps its part before the range; without
/// such a part, its part behind the range.
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

/// The end of the reservation that contains an address, if there is one.
pub fn is_own(address: usize) -> Option<usize> {
    TABLE.iter().find_map(|(start, end)| {
        let (start, end) = (start.load(Ordering::Acquire), end.load(Ordering::Acquire));
        (start <= address && address < end).then_some(end)
    })
}

/// The start of the next reservation behind an address; 0: there is none.
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
        // SAFETY: made above, and no thread uses it.
        unsafe { System.release(at.wrapping_add(1 << 19), 1 << 19) };
        assert_eq!(is_own(at.addr()), Some(at.addr() + (1 << 19)));
        assert_eq!(is_own(at.addr() + (1 << 19)), None);
        // SAFETY: reserved by the test, and no thread uses it.
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
        // SAFETY: made above, and no thread uses it.
        unsafe { System.release(core::ptr::without_provenance_mut(at), 2 << 20) };
        assert_eq!(is_own(at), None);
    }
}
