//! A fake operating system for tests: any page size, refusals on demand, and a
//! ledger that knows which pages are committed.
//!
//! Memory comes from the real one (or Miri's allocator), so contents are real.

extern crate std;

use core::cell::Cell;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::vec::Vec;

use super::{Memory, System};

/// The fake. Leaked, so that it can be copied around like the real one.
#[derive(Clone, Copy)]
pub(crate) struct Fake(&'static State);

struct State {
    page: usize,
    limit: Option<usize>,
    /// Calls that still succeed.
    calls_left: Mutex<Cell<u64>>,
    calls: Mutex<Cell<u64>>,
    committed: Mutex<BTreeSet<usize>>,
    reserved: Mutex<Vec<(usize, usize)>>,
    largest: usize,
}

impl Fake {
    /// A fake with pages of `page` bytes that reserves at most `largest` bytes
    /// in one piece.
    pub(crate) fn new(page: usize, largest: usize, limit: Option<usize>) -> Self {
        Self(Box::leak(Box::new(State {
            page,
            limit,
            calls_left: Mutex::new(Cell::new(u64::MAX)),
            calls: Mutex::new(Cell::new(0)),
            committed: Mutex::new(BTreeSet::new()),
            reserved: Mutex::new(Vec::new()),
            largest,
        })))
    }

    /// Lets `calls` more calls succeed and refuses all later ones.
    pub(crate) fn refuse_after(&self, calls: u64) {
        self.0.calls_left.lock().unwrap().set(calls);
    }

    /// Calls made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.0.calls.lock().unwrap().get()
    }

    /// Pages committed now.
    pub(crate) fn committed_pages(&self) -> usize {
        self.0.committed.lock().unwrap().len()
    }

    /// Whether all of the range is committed.
    pub(crate) fn is_committed(&self, at: *const u8, size: usize) -> bool {
        let committed = self.0.committed.lock().unwrap();
        let first = at.addr() / self.0.page;
        let last = (at.addr() + size - 1) / self.0.page;
        (first..=last).all(|page| committed.contains(&page))
    }

    fn allowed(&self) -> bool {
        let calls = self.0.calls.lock().unwrap();
        calls.set(calls.get() + 1);
        let left = self.0.calls_left.lock().unwrap();
        let now = left.get();
        left.set(now.saturating_sub(1));
        now > 0
    }

    fn note(&self, got: *mut u8, size: usize) -> *mut u8 {
        if !got.is_null() {
            self.0.reserved.lock().unwrap().push((got.addr(), size));
        }
        got
    }

    fn check(&self, at: *mut u8, size: usize) {
        assert!(at.addr().is_multiple_of(self.0.page), "unaligned address");
        assert!(size > 0 && size.is_multiple_of(self.0.page), "unaligned size {size:#x}");
        let reserved = self.0.reserved.lock().unwrap();
        // A range may span two reservations made side by side.
        for end in [at.addr(), at.addr() + size - 1] {
            assert!(
                reserved.iter().any(|&(a, s)| (a..a + s).contains(&end)),
                "{end:#x} is not reserved"
            );
        }
    }
}

impl Memory for Fake {
    fn page_size(&self) -> usize {
        self.0.page
    }

    fn reserve(&self, size: usize, align: usize) -> *mut u8 {
        if size > self.0.largest || !self.allowed() {
            return core::ptr::null_mut();
        }
        self.note(System.reserve(size, align.max(self.0.page)), size)
    }

    fn reserve_at(&self, at: usize, size: usize) -> *mut u8 {
        if size > self.0.largest || !self.allowed() {
            return core::ptr::null_mut();
        }
        self.note(System.reserve_at(at, size), size)
    }

    unsafe fn release(&self, at: *mut u8, size: usize) {
        let mut reserved = self.0.reserved.lock().unwrap();
        let found = reserved.iter().position(|&range| range == (at.addr(), size));
        reserved.swap_remove(found.expect("release of what was not reserved"));
        // SAFETY: the caller's contract.
        unsafe { System.release(at, size) };
    }

    unsafe fn commit(&self, at: *mut u8, size: usize) -> bool {
        self.check(at, size);
        // SAFETY: the caller's contract.
        if !self.allowed() || !unsafe { System.commit(at, size) } {
            return false;
        }
        let mut committed = self.0.committed.lock().unwrap();
        committed.extend((at.addr() / self.0.page)..((at.addr() + size) / self.0.page));
        true
    }

    unsafe fn decommit(&self, at: *mut u8, size: usize) -> bool {
        self.check(at, size);
        assert!(self.is_committed(at, size), "decommit of what is not committed");
        // SAFETY: the caller's contract.
        self.allowed() && unsafe { System.decommit(at, size) }
    }

    fn address_space_limit(&self) -> Option<usize> {
        self.0.limit
    }
}
