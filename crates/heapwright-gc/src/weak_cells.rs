//! Weak handles: cells that keep no object, and the choice of cells that a collection looks at.
//!
//! ```text
//!   block    | cell | cell | cell | ...     64 KiB: an object, null, or a free cell's link
//!            | look | look | look | ...     a byte for each cell: collections look at the cell
//!            | group      | group | ...     a byte for 64 cells: one of their bytes is set
//! ```
//!
//! The runtime reads a cell as it likes. It stores an object through
//! [`Mutator::set_weak`](super::raw::Mutator::set_weak), or over a null that a call or the heap
//! stored. So a collection knows the cells that may hold a young object, and looks at these.
//!
//! - A *major* collection visits all cells, a few in each step ([`WeakCells::visit`]). Afterwards
//!   it looks at new cells, empty cells, and cells whose object had no mark.
//! - A *minor* collection looks at new cells, empty cells, and cells whose object was not yet old.
//!
//! In a heap with few cells, each collection looks at all of them, so an unreported store does no
//! harm. The barrier verifier finds such a store ([`WeakCells::each_passed_over`]).
//!
//! Each mutator has free cells of its own, taken in batches, as for strong handles (`handles`). The
//! owner of a cell writes the cell's bytes, and so does the collector while the world is stopped.

use core::ptr;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use super::array::Array;
use super::cell::Ptr;
use super::handles::{Cell, behind, put, put_all};
use super::locks::With;

/// Cells of a group, and of a block.
const GROUP: usize = 64;
const CELLS: usize = 112 * GROUP;
const BATCH: usize = 64;
/// If there are at most this many cells, each collection looks at all cells.
const FEW: usize = if cfg!(test) { 512 } else { 64 << 10 };

#[repr(C)]
struct Block {
    cells: [Cell; CELLS],
    look: [AtomicU8; CELLS],
    groups: [AtomicU8; CELLS / GROUP],
}

const _: () = assert!(size_of::<Block>() <= UNIT);

struct Inner {
    blocks: Array<*mut Block>,
    free: *mut Cell,
    used: usize,
}

// SAFETY: blocks are memory of the heap. Free cells belong to the owner of their chain.
unsafe impl Send for Inner {}

pub(super) struct WeakCells {
    inner: Lock<Inner>,
    made: AtomicUsize,
    #[cfg(test)]
    pub(super) looked: AtomicUsize,
}

/// A mutator's free cells. All-zero bytes: no cells.
pub(super) struct Own {
    free: Ptr<Cell>,
}

fn is_object(word: *mut u8) -> bool {
    !word.is_null() && word.addr() & 7 == 0
}

/// Returns the block of a cell, and the cell's number there.
fn place(cell: *mut Cell) -> (&'static Block, usize) {
    let within = cell.addr() & (UNIT - 1);
    let block: *const Block = cell.cast::<u8>().wrapping_sub(within).cast();
    // SAFETY: cells lie in blocks, which are aligned to their size, and live as long as the heap.
    (unsafe { &*block }, within / size_of::<Cell>())
}

fn look_at(block: &Block, number: usize) {
    block.look[number].store(1, Relaxed);
    block.groups[number / GROUP].store(1, Relaxed);
}

impl WeakCells {
    pub(super) fn make(&self, own: &Own, object: *mut u8) -> Option<*mut Cell> {
        if own.free.get().is_null() {
            own.free.set(self.take_batch()?);
        }
        let cell = own.free.get();
        // SAFETY: the cell is the first of the mutator's free cells.
        own.free.set(unsafe { behind(cell) });
        self.set(cell, object);
        Some(cell)
    }

    /// Stores an object, or null, into a cell of this heap that is in use.
    pub(super) fn set(&self, cell: *mut Cell, object: *mut u8) {
        let (block, number) = place(cell);
        look_at(block, number);
        block.cells[number].store(object, Relaxed);
    }

    /// Frees a cell of this heap that nobody uses any more.
    pub(super) fn free(&self, own: &Own, cell: *mut Cell) {
        // SAFETY: the cell is this heap's, and is free from now on.
        own.free.set(unsafe { put(own.free.get(), cell) });
    }

    #[cold]
    fn take_batch(&self) -> Option<*mut Cell> {
        let mut inner = self.inner.lock();
        let mut chain = ptr::null_mut();
        for _ in 0..BATCH {
            let mut cell = inner.free;
            if cell.is_null() {
                if inner.used == CELLS || inner.blocks.is_empty() {
                    let Some(mut side) = Side::take(UNIT) else { break };
                    if !inner.blocks.push(side.at().cast()) {
                        side.give();
                        break;
                    }
                    inner.used = 0;
                }
                let Some(&block) = inner.blocks.last() else { break };
                cell = block.cast::<Cell>().wrapping_add(inner.used);
                inner.used += 1;
                self.made.fetch_add(1, Relaxed);
            } else {
                // SAFETY: the cell is the first of the heap's free cells.
                inner.free = unsafe { behind(cell) };
            }
            // SAFETY: the cell was just made, or taken from the free cells.
            chain = unsafe { put(chain, cell) };
        }
        (!chain.is_null()).then_some(chain)
    }

    pub(super) fn take_back(&self, own: &Own) {
        let mut inner = self.inner.lock();
        // SAFETY: both chains have free cells of this heap. The mutator forgets its chain below.
        inner.free = unsafe { put_all(inner.free, own.free.get()) };
        own.free.set(ptr::null_mut());
    }

    pub(super) fn count(&self) -> usize {
        self.made.load(Relaxed)
    }

    /// Visits up to `most` cells from number `at` on, in a major collection, and advances `at`.
    /// From now on the collection looks at cells whose object has no mark, and not at the others.
    /// Visits whole groups. Returns whether no cell is left. The world must be stopped.
    pub(super) fn visit(
        &self,
        at: &mut u32,
        most: usize,
        is_unmarked: impl Fn(*mut u8) -> bool,
    ) -> bool {
        let inner = self.inner.lock();
        let end = self.count().min(*at as usize + most.next_multiple_of(GROUP));
        for number in *at as usize..end {
            // SAFETY: blocks live as long as the heap.
            let block = unsafe { &*inner.blocks[number / CELLS] };
            let number = number % CELLS;
            if number.is_multiple_of(GROUP) {
                // The next cell to be looked at sets the byte again.
                block.groups[number / GROUP].store(0, Relaxed);
            }
            let word = block.cells[number].load(Relaxed);
            if is_object(word) && !is_unmarked(word) {
                block.look[number].store(0, Relaxed);
            } else if word.addr() & 1 == 0 {
                look_at(block, number);
            }
        }
        *at = end as u32;
        end == self.count()
    }

    /// Calls `with` for each cell with an object that this collection looks at. `with` may change
    /// the cell. From now on, collections look at the cell only if `with` returns true, or if the
    /// cell holds no object. The world must be stopped.
    pub(super) fn each_looked_at(&self, mut with: impl FnMut(&Cell) -> bool) {
        let inner = self.inner.lock();
        let few = self.count() <= FEW;
        for (nth, &block) in inner.blocks.iter().enumerate() {
            // SAFETY: blocks live as long as the heap.
            let block = unsafe { &*block };
            let used = (self.count() - nth * CELLS).min(CELLS);
            for (group, any) in block.groups[..used.div_ceil(GROUP)].iter().enumerate() {
                if !few && any.load(Relaxed) == 0 {
                    continue;
                }
                let mut stay = false;
                for number in group * GROUP..used.min((group + 1) * GROUP) {
                    let look = &block.look[number];
                    if !few && look.load(Relaxed) == 0 {
                        continue;
                    }
                    #[cfg(test)]
                    self.looked.fetch_add(1, Relaxed);
                    let cell = &block.cells[number];
                    let word = cell.load(Relaxed);
                    let again = if is_object(word) {
                        with(cell) || cell.load(Relaxed).is_null()
                    } else {
                        // A free cell needs no look: the next store into the cell sets its byte.
                        word.addr() & 1 == 0
                    };
                    look.store(u8::from(again), Relaxed);
                    stay |= again;
                }
                any.store(u8::from(stay), Relaxed);
            }
        }
    }

    /// Calls `with` for each cell that collections pass over. The world must be stopped.
    pub(super) fn each_passed_over(&self, mut with: impl FnMut(&Cell)) {
        self.each_cell(|cell| {
            let (block, number) = place(ptr::from_ref(cell).cast_mut());
            if block.look[number].load(Relaxed) == 0 {
                with(cell);
            }
        });
    }

    /// Calls `with` for each cell that holds an object. No other thread may write cells meanwhile.
    pub(super) fn each_cell(&self, mut with: impl FnMut(&Cell)) {
        let inner = self.inner.lock();
        for number in 0..self.count() {
            // SAFETY: blocks live as long as the heap.
            let block = unsafe { &*inner.blocks[number / CELLS] };
            let cell = &block.cells[number % CELLS];
            if is_object(cell.load(Relaxed)) {
                with(cell);
            }
        }
    }

    /// Gives all cells back. No thread may use a cell afterwards.
    pub(super) fn end(&self) {
        let mut inner = self.inner.lock();
        inner.blocks.iter().for_each(|&block| Side::give_at(block.cast()));
        inner.blocks.end();
        inner.free = ptr::null_mut();
        inner.used = 0;
        self.made.store(0, Relaxed);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.inner);
    }
}
