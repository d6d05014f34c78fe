//! Handles: cells that keep their objects. (Weak handles keep no objects: see `weak_cells`.)
//!
//! ```text
//!   table  | cell | cell | cell | ...      side memory, of the heap
//!            |      |      +-- free: the next free cell, with its lowest bit set
//!            |      +--------- a word that is no object: ignored
//!            +---------------- an object: a root
//! ```
//!
//! The runtime reads and writes a cell as it likes. Cells are roots, and are read while the world
//! is stopped, so they need no barrier. Each mutator has free cells of its own, taken in batches of
//! 64 under a lock. So to make or free a cell mostly takes no lock and no locked instruction. Any
//! mutator may free a cell, and owns the cell from then on.
//!
//! Loom does not check this file. A cell or chain belongs to one thread at a time. It changes hands
//! under the lock, or while the world is stopped, which loom checks elsewhere. Tests with threads
//! check the counts (`tests/once_wrong.rs`).

use core::ptr;

use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::cell::{Num, Ptr};
use super::locks::With;
use super::table::Table;

const BATCH: usize = 64;

pub(super) type Cell = AtomicPtr<u8>;

struct Chain(*mut Cell);

// SAFETY: free cells belong to the owner of their chain.
unsafe impl Send for Chain {}

struct Inner {
    free: Chain,
    made: usize,
}

pub(super) struct Handles {
    cells: Table<Cell, 512, 20>,
    inner: Lock<Inner>,
    /// The number of cells that were made. They are in use, or free.
    made: AtomicUsize,
    /// Handles made minus handles freed, by detached mutators.
    balance: Num,
}

pub(super) struct Own {
    free: Ptr<Cell>,
    /// Cells made minus cells freed, by this mutator.
    pub(super) balance: Num,
}

fn link(next: *mut Cell) -> *mut u8 {
    next.cast::<u8>().map_addr(|at| at | 1)
}

/// Puts a cell on a chain.
///
/// # Safety
///
/// The cell belongs to a live heap, and is free from now on.
pub(super) unsafe fn put(free: *mut Cell, cell: *mut Cell) -> *mut Cell {
    // SAFETY: the cell belongs to a live heap, as the caller promises.
    unsafe { &*cell }.store(link(free), Ordering::Relaxed);
    cell
}

/// The cell behind the first of a chain.
///
/// # Safety
///
/// The cell belongs to a live heap, and is in a chain of free cells.
pub(super) unsafe fn behind(cell: *mut Cell) -> *mut Cell {
    // SAFETY: the cell belongs to a live heap, as the caller promises.
    unsafe { &*cell }.load(Ordering::Relaxed).map_addr(|at| at & !1).cast()
}

/// Puts the cells of the chain `cell` on the chain `free`. Returns the longer chain.
///
/// # Safety
///
/// Both chains are the caller's, and have free cells of a live heap.
pub(super) unsafe fn put_all(mut free: *mut Cell, mut cell: *mut Cell) -> *mut Cell {
    while !cell.is_null() {
        // SAFETY: the cell is free, and in the chain.
        let next = unsafe { behind(cell) };
        // SAFETY: the cell is free, and has left its chain.
        free = unsafe { put(free, cell) };
        cell = next;
    }
    free
}

impl Handles {
    pub(super) fn make(&self, own: &Own, object: *mut u8) -> Option<*mut Cell> {
        if own.free.get().is_null() {
            own.free.set(self.take_batch()?);
        }
        let cell = own.free.get();
        // SAFETY: the cell is the first of the mutator's free cells.
        own.free.set(unsafe { behind(cell) });
        own.balance.add(1);
        // SAFETY: the cell is the heap's. It was one of the mutator's free cells until now.
        unsafe { &*cell }.store(object, Ordering::Relaxed);
        Some(cell)
    }

    /// Frees a cell.
    ///
    /// # Safety
    ///
    /// [`Handles::make`] made the cell, and nobody uses the cell any more.
    pub(super) unsafe fn free(&self, own: &Own, cell: *mut Cell) {
        // SAFETY: the cell is this heap's, and the caller gives it back.
        own.free.set(unsafe { put(own.free.get(), cell) });
        own.balance.set(own.balance.get().wrapping_sub(1));
    }

    #[cold]
    fn take_batch(&self) -> Option<*mut Cell> {
        let mut inner = self.inner.lock();
        let mut chain = ptr::null_mut();
        for _ in 0..BATCH {
            let cell = if inner.free.0.is_null() {
                let Some(cell) = self.cells.get_or_make(inner.made) else { break };
                inner.made += 1;
                ptr::from_ref(cell).cast_mut()
            } else {
                let cell = inner.free.0;
                // SAFETY: the cell is the first of the heap's free cells.
                inner.free.0 = unsafe { behind(cell) };
                cell
            };
            // SAFETY: the cell was just made, or taken from the free cells.
            chain = unsafe { put(chain, cell) };
        }
        self.made.store(inner.made, Ordering::Release);
        (!chain.is_null()).then_some(chain)
    }

    pub(super) fn take_back(&self, own: &Own) {
        let mut inner = self.inner.lock();
        // SAFETY: both chains have free cells of this heap. The mutator forgets its chain below.
        inner.free.0 = unsafe { put_all(inner.free.0, own.free.get()) };
        own.free.set(ptr::null_mut());
    }

    pub(super) fn keep_balance(&self, own: &Own) {
        self.balance.add_shared(own.balance.get());
    }

    pub(super) fn balance(&self) -> usize {
        self.balance.get()
    }

    /// Calls `with` for each cell's object. No thread may write cells meanwhile.
    pub(super) fn each(&self, mut with: impl FnMut(*mut u8)) {
        self.each_cell(|cell| with(cell.load(Ordering::Relaxed)));
    }

    /// Calls `with` for each cell that holds an object. No other thread may write cells meanwhile.
    pub(super) fn each_cell(&self, mut with: impl FnMut(&Cell)) {
        for number in 0..self.made.load(Ordering::Acquire) {
            if let Some(cell) = self.cells.get(number) {
                let kept = cell.load(Ordering::Relaxed);
                if !kept.is_null() && kept.addr() & 7 == 0 {
                    with(cell);
                }
            }
        }
    }

    /// Gives all cells back. No thread may use a cell afterwards.
    pub(super) fn end(&self) {
        self.cells.end();
        let mut inner = self.inner.lock();
        inner.free.0 = ptr::null_mut();
        inner.made = 0;
        self.made.store(0, Ordering::Relaxed);
        self.balance.set(0);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.inner);
    }
}
