//! A fake operating system for tests: any page size, refusals on demand, and a ledger of committed
//! pages. Memory comes from the real system (or Miri's allocator).
//!
//! ```text
//! refuse_after(n)  n more calls succeed, all later ones are refused: exhaustion
//! refuse_only(n)   n more calls succeed, one is refused, all later ones succeed:
//!                  the caller must have undone its half-done work
//! keep_whole(true) a release that would split a reservation is refused, as the
//!                  kernel does at its limit of mappings
//! ```
//!
//! Callers must commit only reserved memory, decommit only committed memory, and release only their
//! reservations.

extern crate std;

use core::ops::Range;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::vec::Vec;

use super::{Memory, System};

/// The state is leaked, so that the fake can be copied like the real system.
#[derive(Clone, Copy)]
pub struct Fake(&'static State);

static FAR: AtomicUsize = AtomicUsize::new(0x2000_0000_0000);
const FAR_APART: usize = 16 << 30;

struct State {
    page: usize,
    limit: Option<usize>,
    refused: Mutex<Range<u64>>,
    calls: Mutex<u64>,
    committed: Mutex<BTreeSet<usize>>,
    reserved: Mutex<Vec<(usize, usize)>>,
    largest: usize,
    keeps_whole: AtomicBool,
}

impl Fake {
    /// Pages of `page` bytes; at most `largest` bytes in one piece.
    pub fn new(page: usize, largest: usize, limit: Option<usize>) -> Self {
        Self(Box::leak(Box::new(State {
            page,
            limit,
            refused: Mutex::new(0..0),
            calls: Mutex::new(0),
            committed: Mutex::new(BTreeSet::new()),
            reserved: Mutex::new(Vec::new()),
            largest,
            keeps_whole: AtomicBool::new(false),
        })))
    }

    /// Lets `calls` more calls succeed and refuses all later ones.
    pub fn refuse_after(&self, calls: u64) {
        *self.0.refused.lock().unwrap() = self.calls() + calls..u64::MAX;
    }

    /// Lets `calls` more calls succeed, refuses the next call, and lets all later calls succeed.
    pub fn refuse_only(&self, calls: u64) {
        let number = self.calls() + calls;
        *self.0.refused.lock().unwrap() = number..number + 1;
    }

    /// Refuses nothing from now on.
    pub fn refuse_nothing(&self) {
        *self.0.refused.lock().unwrap() = 0..0;
    }

    /// Sets whether releases that would split a reservation are refused.
    pub fn keep_whole(&self, keep: bool) {
        self.0.keeps_whole.store(keep, Ordering::Relaxed);
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        *self.0.calls.lock().unwrap()
    }

    /// Bytes reserved now.
    pub fn reserved_bytes(&self) -> usize {
        self.0.reserved.lock().unwrap().iter().map(|&(_, size)| size).sum()
    }

    /// Gives back all memory that was reserved and not released.
    ///
    /// # Safety
    ///
    /// No thread uses the memory afterwards.
    pub unsafe fn give_back(&self) {
        for (at, size) in self.0.reserved.lock().unwrap().drain(..) {
            // SAFETY: by the contract no thread uses the reservation.
            unsafe { System.release(core::ptr::without_provenance_mut(at), size) };
        }
        self.0.committed.lock().unwrap().clear();
    }

    /// Whether the byte at `address` is reserved.
    pub fn is_reserved(&self, address: usize) -> bool {
        let reserved = self.0.reserved.lock().unwrap();
        reserved.iter().any(|&(at, size)| (at..at + size).contains(&address))
    }

    /// Whether all of the range is committed.
    pub fn is_committed(&self, at: *const u8, size: usize) -> bool {
        let committed = self.0.committed.lock().unwrap();
        let first = at.addr() / self.0.page;
        let last = (at.addr() + size - 1) / self.0.page;
        (first..=last).all(|page| committed.contains(&page))
    }

    fn allowed(&self) -> bool {
        let mut calls = self.0.calls.lock().unwrap();
        let number = *calls;
        *calls += 1;
        !self.0.refused.lock().unwrap().contains(&number)
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
        // A range may span adjacent reservations.
        let mut from = at.addr();
        while from < at.addr() + size {
            let piece = reserved.iter().find(|&&(a, s)| (a..a + s).contains(&from));
            let &(start, length) = piece.unwrap_or_else(|| panic!("{from:#x} is not reserved"));
            from = start + length;
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
        let align = align.max(self.0.page);
        if self.0.limit.is_some() {
            let at = FAR.fetch_add(FAR_APART, Ordering::Relaxed);
            let got = self.note(System.reserve_at(at.next_multiple_of(align), size), size);
            if !got.is_null() {
                return got;
            }
        }
        self.note(System.reserve(size, align), size)
    }

    fn reserve_at(&self, at: usize, size: usize) -> *mut u8 {
        if size > self.0.largest || !self.allowed() {
            return core::ptr::null_mut();
        }
        self.note(System.reserve_at(at, size), size)
    }

    unsafe fn release(&self, at: *mut u8, size: usize) -> bool {
        assert!(at.addr().is_multiple_of(self.0.page), "unaligned address");
        let mut reserved = self.0.reserved.lock().unwrap();
        let (from, to) = (at.addr(), at.addr() + size);
        let splits = reserved.iter().any(|&(at, size)| at < from && to < at + size);
        if splits && self.0.keeps_whole.load(Ordering::Relaxed) {
            return false;
        }
        let mut found = 0;
        for (start, length) in core::mem::take(&mut *reserved) {
            let (a, b) = (from.clamp(start, start + length), to.clamp(start, start + length));
            found += b - a;
            reserved.extend([(start, a - start), (b, start + length - b)]);
        }
        reserved.retain(|&(_, size)| size > 0);
        assert_eq!(found, size, "release of what was not reserved");
        let pages = from / self.0.page..to / self.0.page;
        self.0.committed.lock().unwrap().retain(|page| !pages.contains(page));
        // SAFETY: by the contract of this function.
        unsafe { System.release(at, size) }
    }

    unsafe fn commit(&self, at: *mut u8, size: usize) -> bool {
        self.check(at, size);
        // SAFETY: by the contract of this function.
        if !self.allowed() || !unsafe { System.commit(at, size) } {
            return false;
        }
        let mut committed = self.0.committed.lock().unwrap();
        committed.extend((at.addr() / self.0.page)..((at.addr() + size) / self.0.page));
        true
    }

    unsafe fn expose(&self, _at: *mut u8, _size: usize) -> bool {
        false
    }

    unsafe fn decommit(&self, at: *mut u8, size: usize) -> bool {
        self.check(at, size);
        assert!(self.is_committed(at, size), "decommit of what is not committed");
        // SAFETY: by the contract of this function.
        self.allowed() && unsafe { System.decommit(at, size) }
    }

    unsafe fn retract(&self, at: *mut u8, size: usize) -> bool {
        assert!(self.is_committed(at, size), "retraction of what is not committed");
        // SAFETY: the caller's contract. (The portable system cannot make memory inaccessible: it
        // only decommits the pages, and the ledger knows which pages are writable.)
        let go = || unsafe { System.retract(at, size) } || unsafe { System.decommit(at, size) };
        let done = self.allowed() && go();
        if done {
            let pages = at.addr() / self.0.page..(at.addr() + size) / self.0.page;
            self.0.committed.lock().unwrap().retain(|page| !pages.contains(page));
        }
        done
    }

    fn address_space_limit(&self) -> Option<usize> {
        self.0.limit
    }
}
