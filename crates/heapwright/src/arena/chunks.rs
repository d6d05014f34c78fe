//! The chunks of an arena: runs of units in a list, which are used in this order.
//!
//! ```text
//!   chunk  <->  chunk  <->  chunk  <->  chunk          kept by a reset
//!     full        full        ^ current    free
//! ```
//!
//! The list's links lie in the records of the chunks' first units, so no part of the list lies in
//! the arena's memory. A request skips chunks that are too small for it, until the next reset.

use core::alloc::Layout;
use core::cell::Cell;

use super::bump;
use crate::address_map::{Entry, MAP};
use crate::chunk::{self, Want};
use crate::os::Memory;
use crate::os::SYSTEM;
use crate::runs;
use crate::size_class::UNIT;
use crate::substrate;
use crate::sync::atomic::Ordering;
use crate::unit_list::{ByOwner, UnitList};

/// All chunks of one arena, for one thread at a time or behind a lock.
pub(super) struct Chunks {
    list: UnitList<ByOwner>,
    /// Bytes of the next chunk, unless the request needs more.
    usual: Cell<usize>,
    /// Bytes that may still be used before the limit.
    left: Cell<usize>,
}

#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) start: *mut u8,
    pub(super) end: usize,
}

pub(super) fn bounds(unit: usize) -> Bounds {
    let start = MAP.address_of(unit);
    Bounds { start, end: start.addr() + length(unit) }
}

/// Returns the bytes of a chunk that may be used: its whole run, up to the arena's limit.
#[inline]
fn length(unit: usize) -> usize {
    MAP.record(unit).usable.load(Ordering::Relaxed)
}

impl Chunks {
    pub(super) const fn new(limit: usize) -> Self {
        Self { list: UnitList::new(), usual: Cell::new(bump::FIRST), left: Cell::new(limit) }
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.list.first()
    }

    /// Takes the first chunk, with room for `layout`. `None` without memory or at the limit.
    pub(super) fn first_of(&self, layout: Layout) -> Option<usize> {
        self.usual.set(bump::first_chunk(layout.size()));
        self.next(None, layout)
    }

    /// Returns a chunk behind `current` with room, old or new. `None` without memory or at a limit.
    pub(super) fn next(&self, current: Option<usize>, layout: Layout) -> Option<usize> {
        let behind = |unit| self.list.after(&MAP, unit);
        let mut last = current;
        let mut at = current.map_or_else(|| self.list.first(), behind);
        while let Some(unit) = at {
            let Bounds { start, end } = bounds(unit);
            if bump::place(start.addr(), layout.size(), layout.align()).1 <= end {
                return Some(unit);
            }
            last = at;
            at = behind(unit);
        }
        let unit = self.take(layout)?;
        self.list.insert_after(&MAP, last, unit);
        Some(unit)
    }

    #[cold]
    fn take(&self, layout: Layout) -> Option<usize> {
        if !substrate::open_and_begin() {
            return None;
        }
        let needed = layout.size().checked_next_multiple_of(UNIT)?;
        let (usual, next) = bump::next_chunk(self.usual.get(), needed);
        let (align, left) = (layout.align().div_ceil(UNIT), self.left.get());
        // If there is not enough memory for the usual size, takes only the needed bytes.
        for (bytes, next) in [(usual, next), (needed.max(UNIT), self.usual.get())] {
            let usable = bytes.min(left);
            if usable < layout.size() {
                return None;
            }
            let units = usable.div_ceil(UNIT);
            let run = runs::take(units, align, Want::Any, Entry::ARENA, |_| Entry::ARENA);
            if let Some(run) = run {
                MAP.record(run.unit).usable.store(usable, Ordering::Relaxed);
                self.left.set(left - usable);
                self.usual.set(next);
                return Some(run.unit);
            }
        }
        None
    }

    /// Releases the chunks behind `current`, or all, at once if `now`. Returns the number of bytes.
    ///
    /// # Safety
    ///
    /// No thread uses these chunks, nor takes memory of them before [`Chunks::next`] returns them.
    pub(super) unsafe fn give_behind(&self, current: Option<usize>, now: bool) -> usize {
        let mut bytes = 0;
        while let Some(unit) =
            current.map_or_else(|| self.list.first(), |at| self.list.after(&MAP, at))
        {
            let size = length(unit);
            let units = MAP.record(unit).units.load(Ordering::Relaxed) as usize;
            self.list.remove(&MAP, unit);
            if now {
                // SAFETY: the run is the list's, and by the contract no thread uses it.
                unsafe { runs::give_purged(unit, units) };
            } else {
                runs::give(unit, units);
            }
            self.left.set(self.left.get() + size);
            bytes += size;
        }
        self.usual.set(bump::FIRST.max(self.usual.get().min(self.bytes())));
        bytes
    }

    /// Gives back the whole pages of chunk `unit` behind `from`. Returns the number of bytes.
    ///
    /// # Safety
    ///
    /// The chunk is in this list. No thread uses its bytes from `from` on until this function
    /// returns: the caller has the arena to itself, or has moved the position to the chunk's end.
    pub(super) unsafe fn purge_rest(&self, unit: usize, from: usize) -> usize {
        let Bounds { start, end } = bounds(unit);
        // The run ends at a whole page, even if the arena's limit lies before.
        let page = SYSTEM.page_size();
        let (from, end) = (from.next_multiple_of(page), end.next_multiple_of(page));
        if from >= end {
            return 0;
        }
        let at = start.wrapping_add(from - start.addr());
        // SAFETY: the pages are whole and of the list's run. By the contract no thread uses them.
        unsafe { chunk::purge_pages(at, end - from) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.up_to(None)
    }

    /// Returns the bytes of the chunks before `unit`, or of all chunks.
    pub(super) fn up_to(&self, unit: Option<usize>) -> usize {
        let mut bytes = 0;
        let mut at = self.list.first();
        while let Some(this) = at
            && at != unit
        {
            bytes += length(this);
            at = self.list.after(&MAP, this);
        }
        bytes
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: the arena ends, and its blocks borrow it. So no thread uses a chunk of it.
        unsafe { self.give_behind(None, false) };
    }
}
