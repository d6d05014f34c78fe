//! Warm runs: large blocks of up to 1 MiB that keep their pages when they are freed, and cannot be
//! accessed all the same.
//!
//! ```text
//!   cold    ... | marks | pages | marks | ...                     of one mapping with its neighbours
//!                         freed: marks, no pages                  (os::guard)
//!   warm    ... | marks, read-only | pages | marks, read-only |   a mapping of its own
//!                         freed: cleared, inaccessible            (os::shut)
//! ```
//!
//! To drop pages and to fault them in again costs more than all else that `malloc` and `free` of
//! such a block do: some 2 us a page. To clear them costs 35 ns a page, and to change the
//! protection of what is a mapping already splits nothing. That it stays one is what the read-only
//! guards are for: a neighbour of equal protection would be joined to it.
//!
//! A run becomes warm when it is freed for the second time, so blocks that come once pay nothing
//! for it. Freed warm blocks have [`MOST_BYTES`] of memory at most; a run that finds no room there
//! becomes cold. A page that was not touched is not cleared, for that would put memory behind it:
//! the kernel is asked (`mincore`), until all of a run's pages are there.
//!
//! Invariants: a record's warmth says so if and only if the run's guards are read-only; nobody but
//! the holder of the block, or of the run that was taken out of the queue, changes it.
//!
//! Called by `large`.

use super::slots;
use crate::address_map::MAP;
use crate::memory_limit;
use crate::os::{self, Memory, SYSTEM};
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The longest block that stays warm.
const LONGEST: usize = 1 << 20;
/// Bytes of freed warm blocks.
const MOST_BYTES: usize = 8 << 20;
/// Warm runs, live or freed: each is up to four mappings.
const MOST_RUNS: usize = 128;
/// Stretches without pages that are looked for in a block.
const MOST_HOLES: usize = 4;
/// The shortest page there is.
const LEAST_PAGE: usize = 4 << 10;

/// What a run's record knows: it is cold, and comes from the chunk.
const FRESH: u8 = 0;
/// It is cold, and comes from the queue.
const REUSED: u8 = 1;
/// It is warm.
const WARM: u8 = 2;
/// It is warm, and all of its block's pages were touched.
const FULL: u8 = 3;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A run with a block: where all of it lies, and the block's usable bytes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The block's first unit.
    pub(super) block: usize,
    /// Units of the guard before it.
    pub(super) before: usize,
    /// Units of it and of the guard behind it.
    pub(super) behind: usize,
    /// Bytes of it that may be used.
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

    /// Whether the run is warm.
    pub(super) fn is_warm(self) -> bool {
        self.known() >= WARM
    }

    /// The run comes from the chunk.
    pub(super) fn begin(self) {
        self.note(FRESH);
    }

    /// The run comes from the queue, and is cold.
    pub(super) fn begin_again(self) {
        self.note(REUSED);
    }

    /// Clears the block, which its holder gives away, and makes it inaccessible, pages and all.
    /// False: it can be accessed.
    pub(super) fn free(self) -> bool {
        if self.known() == FRESH || self.usable > LONGEST {
            return false;
        }
        if !take(&BYTES, self.usable, MOST_BYTES) {
            return false;
        }
        if self.is_warm() || self.warm_up() {
            self.clear();
            // SAFETY: the block's pages, which nobody uses any more.
            if unsafe { os::shut(self.at(), self.usable) } {
                return true;
            }
        }
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        false
    }

    /// Makes the freed block of a warm run accessible; it reads as zero. False: the kernel refused.
    pub(super) fn reuse(self) -> bool {
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        // SAFETY: the block's pages, which the heap committed.
        unsafe { SYSTEM.commit(self.at(), self.usable) }
    }

    /// Makes the run of a freed block cold, and drops its pages. False: the kernel refused.
    pub(super) fn cool(self) -> bool {
        BYTES.fetch_sub(self.usable, Ordering::Relaxed);
        // (Where it refuses, the block can be accessed, and reads as zero.)
        // SAFETY: the block's pages, which nobody uses.
        unsafe { os::guard(self.at(), self.usable) };
        self.cool_live()
    }

    /// Makes the run of a block that nobody uses, or only its holder, cold, if it is warm: its
    /// guards, and what was shut. False: the kernel refused.
    pub(super) fn cool_live(self) -> bool {
        if !self.is_warm() {
            return true;
        }
        let [(from, before), (_, behind)] = self.guards();
        // SAFETY: the whole run, which the heap committed; marks stay.
        let done = unsafe { SYSTEM.commit(from, before + self.usable + behind) };
        if done {
            self.note(REUSED);
            RUNS.fetch_sub(1, Ordering::Relaxed);
        }
        done
    }

    /// Makes the run of a live block a mapping of its own.
    fn warm_up(self) -> bool {
        if !os::guards_are_light() || !take(&RUNS, 1, MOST_RUNS) {
            return false;
        }
        self.note(WARM);
        let protect = |(at, size): (*mut u8, usize)| {
            // SAFETY: a guard of the run, with marks: nobody reads there, either.
            unsafe { SYSTEM.expose(at, size) }
        };
        self.guards().into_iter().all(protect) || {
            self.cool_live();
            false
        }
    }

    /// Makes the block's bytes zero.
    fn clear(self) {
        // SAFETY: bytes of the block, which its holder gives away.
        let fill = |from: usize, size: usize| unsafe {
            slots::clear(self.at().wrapping_add(from), size);
        };
        // SAFETY: pages of the block, which its holder gives away.
        let drop = |from: usize, size: usize| unsafe {
            SYSTEM.make_zero(self.at().wrapping_add(from), size);
        };
        if self.known() == FULL {
            return fill(0, self.usable);
        }
        // (The kernel's, for it is asked; the option `page` may have another one.)
        let page = os::kernel_page_size();
        let mut resident = [0; LONGEST / LEAST_PAGE];
        let resident = &mut resident[..self.usable / page];
        // (A sandbox may end the program for a call that it does not know.)
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
            // (What is not in memory may be on the disk.)
            if stretch[0] & 1 != 0 {
                fill(from, size)
            } else {
                drop(from, size)
            }
            from += size;
        }
    }
}

/// Counts `more`, up to `most`. False: it would be more.
fn take(counter: &AtomicUsize, more: usize, most: usize) -> bool {
    let sum = |now: usize| now.checked_add(more).filter(|&sum| sum <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
}
