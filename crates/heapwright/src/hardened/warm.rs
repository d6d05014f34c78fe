//! Warm runs: large blocks up to 1 MiB that keep their pages when freed, but become inaccessible.
//!
//! ```text
//!   cold    ... | marks | pages | marks | ...                     in its neighbours' mapping
//!                         freed: marks, no pages                  (os::guard)
//!   warm    ... | marks, read-only | pages | marks, read-only |   a mapping of its own
//!                         freed: cleared, inaccessible            (os::shut)
//! ```
//!
//! To drop pages and to fault them in again costs more than the rest of `malloc` and `free` of such
//! a block. Clearing is far cheaper. A change of a whole mapping's protection splits no mapping.
//! Without the read-only guards, the kernel would merge the run with a neighbour of equal
//! protection.
//!
//! A run becomes warm at its second free, so blocks used once cost nothing. Beyond [`MOST_BYTES`]
//! of freed warm blocks a run becomes cold. An untouched page is not cleared, because that would
//! commit it. The kernel tells which pages are touched (`mincore`), until all are.
//!
//! Invariants: a record's warmth is set if and only if the run's guards are read-only. Only the
//! holder of the block, or of the run taken from the queue, changes the warmth. Called by `large`.

use super::slots;
use crate::address_map::MAP;
use crate::memory_limit;
use crate::os::{self, Memory, SYSTEM};
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

const LONGEST: usize = 1 << 20;
const MOST_BYTES: usize = 8 << 20;
/// The most warm runs. Each consists of up to four mappings.
const MOST_RUNS: usize = 128;
const MOST_HOLES: usize = 4;
const LEAST_PAGE: usize = 4 << 10;

/// A run's warmth in its record: the run is cold, and came from the chunk.
const FRESH: u8 = 0;
/// The run is cold, and came from the queue.
const REUSED: u8 = 1;
const WARM: u8 = 2;
/// The run is warm, and all of its block's pages were touched.
const FULL: u8 = 3;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static RUNS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) block: usize,
    /// Units of the guard before the block.
    pub(super) before: usize,
    /// Units of the block and of the guard behind it.
    pub(super) behind: usize,
    pub(super) usable: usize,
}

impl Place {
    fn warmth(self) -> &'static AtomicU8 {
        &MAP.record(self.block).zero
    }

    fn known(self) -> u8 {
        self.warmth().load(Ordering::Relaxed)
    }

    fn note(self, state: u8) {
        self.warmth().store(state, Ordering::Relaxed);
    }

    fn at(self) -> *mut u8 {
        MAP.address_of(self.block)
    }

    fn guards(self) -> [(*mut u8, usize); 2] {
        let before = self.before * UNIT;
        let behind = self.behind * UNIT - self.usable;
        [(self.at().wrapping_sub(before), before), (self.at().wrapping_add(self.usable), behind)]
    }

    pub(super) fn is_warm(self) -> bool {
        self.known() >= WARM
    }

    pub(super) fn begin(self) {
        self.note(FRESH);
    }

    pub(super) fn begin_again(self) {
        self.note(REUSED);
    }

    /// Clears the block, which its holder gives up, and makes it inaccessible. The block keeps its
    /// pages. Returns false if the block is still accessible.
    pub(super) fn free(self) -> bool {
        if self.known() == FRESH || self.usable > LONGEST {
            return false;
        }
        if !take(&BYTES, self.usable, MOST_BYTES) {
            return false;
        }
        if self.is_warm() || self.warm_up() {
            self.clear();
            // SAFETY: the pages are the block's, and no code uses them any more.
            if unsafe { os::shut(self.at(), self.usable) } {
                return true;
            }
        }
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        false
    }

    /// Makes the freed block of a warm run accessible, or returns false. The block reads as zero.
    pub(super) fn reuse(self) -> bool {
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        // SAFETY: the pages are the block's, and the heap committed them.
        unsafe { SYSTEM.commit(self.at(), self.usable) }
    }

    /// Makes the run of a freed block cold, and drops its pages, or returns false.
    pub(super) fn cool(self) -> bool {
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        // If the kernel refuses, the block stays accessible and reads as zero.
        // SAFETY: the pages are the block's, and no code uses them.
        unsafe { os::guard(self.at(), self.usable) };
        self.cool_live()
    }

    /// Makes a warm run cold: restores its guards and access. The caller must be the block's only
    /// user. Returns false if the kernel refused.
    pub(super) fn cool_live(self) -> bool {
        if !self.is_warm() {
            return true;
        }
        let [(from, before), (_, behind)] = self.guards();
        // SAFETY: the range is the whole run, which the heap committed. Guard marks stay.
        let done = unsafe { SYSTEM.commit(from, before + self.usable + behind) };
        if done {
            self.note(REUSED);
            RUNS.fetch_sub(1, Ordering::Relaxed);
        }
        done
    }

    /// Forgets that a run is warm, because the run goes to the chunk.
    pub(super) fn forget(self) {
        if self.is_warm() {
            self.note(REUSED);
            RUNS.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Makes the block of a cold run a mapping of its own. Returns false if that fails.
    fn warm_up(self) -> bool {
        if !os::guards_are_light() || !take(&RUNS, 1, MOST_RUNS) {
            return false;
        }
        self.note(WARM);
        let protect = |(at, size): (*mut u8, usize)| {
            // SAFETY: the range is a guard of the run. Its marks still forbid access.
            unsafe { SYSTEM.expose(at, size) }
        };
        self.guards().into_iter().all(protect) || {
            self.cool_live();
            false
        }
    }

    fn clear(self) {
        // SAFETY: the bytes belong to the block, which its holder gives up.
        let fill = |from: usize, size: usize| unsafe {
            slots::clear(self.at().wrapping_add(from), size);
        };
        // SAFETY: the pages belong to the block, which its holder gives up.
        let drop = |from: usize, size: usize| unsafe {
            SYSTEM.make_zero(self.at().wrapping_add(from), size);
        };
        if self.known() == FULL {
            return fill(0, self.usable);
        }
        // The kernel reports pages of its own size, which may differ from `SYSTEM.page_size()`.
        let page = os::kernel_page_size();
        let mut resident = [0; LONGEST / LEAST_PAGE];
        let resident = &mut resident[..self.usable / page];
        // A sandbox may end the program for an unknown system call.
        if memory_limit::is_in_sandbox()
            || !os::resident_pages(self.at().addr(), self.usable, resident)
        {
            return drop(0, self.usable);
        }
        let is_there = |at: usize| resident[at] & 1 != 0;
        let holes =
            (0..resident.len()).filter(|&at| !is_there(at) && (at == 0 || is_there(at - 1)));
        match holes.count() {
            0 => self.note(FULL),
            1..=MOST_HOLES => (),
            _ => return drop(0, self.usable),
        }
        let mut from = 0;
        for stretch in resident.chunk_by(|one, other| (one ^ other) & 1 == 0) {
            let size = stretch.len() * page;
            // A page that is not in memory may be in swap.
            if stretch[0] & 1 != 0 {
                fill(from, size)
            } else {
                drop(from, size)
            }
            from += size;
        }
    }
}

/// Adds `more` to a counter. Returns false, and adds nothing, if the sum would exceed `most`.
fn take(counter: &AtomicUsize, more: usize, most: usize) -> bool {
    let sum = |now: usize| now.checked_add(more).filter(|&sum| sum <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
}
