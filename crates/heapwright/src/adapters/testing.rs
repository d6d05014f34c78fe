//! Exact counts of a closure's allocations, for budgets in tests.
//!
//! ```text
//! #[global_allocator] Counting(Heapwright)     every call passes through it
//!   this thread counts?  no                    one read of a thread-local; then the heap
//!                        yes                   counts in the tally; then the heap
//! ```
//!
//! The heap's fast paths have no counters, so a test or a benchmark installs this allocator around
//! another one. Each thread has its own tally, so tests may run at the same time. Sizes are
//! requested sizes.

extern crate std;

use super::Heapwright;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;

pub use crate::tally::Allocations;

/// An allocator that counts the calls to another allocator while [`allocations`] runs.
///
/// ```
/// use heapwright::testing::{Counting, allocations};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting::new();
///
/// let (squares, used) = allocations(|| (0..1000_u32).map(|n| n * n).collect::<Vec<_>>());
/// assert_eq!((used.allocations, used.bytes, used.peak_bytes), (1, 4000, 4000));
///
/// let ((), used) = allocations(|| drop(squares));
/// assert_eq!((used.allocations, used.frees, used.kept_bytes), (0, 1, -4000));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting<A = Heapwright>(A);

impl Counting {
    /// Counts the calls to [`Heapwright`].
    #[must_use]
    pub const fn new() -> Self {
        Self(Heapwright)
    }
}

impl<A> Counting<A> {
    /// Counts the calls to another allocator.
    #[must_use]
    pub const fn around(allocator: A) -> Self {
        Self(allocator)
    }
}

std::thread_local! {
    /// `None` while the thread does not count. (A `const` value without drop never allocates.)
    static TALLY: Cell<Option<Allocations>> = const { Cell::new(None) };
}

/// Runs a closure. Returns its result, and the calling thread's allocations during the run.
///
/// Calls can be nested. The outer call also counts what the inner call counts.
///
/// # Panics
///
/// Panics if the program's global allocator is no [`Counting`], because nothing would be counted.
pub fn allocations<T>(run: impl FnOnce() -> T) -> (T, Allocations) {
    let outer = TALLY.replace(Some(Allocations::default()));
    // Restores the outer tally, also if the closure panics.
    let counting = Restore(outer);
    #[expect(clippy::disallowed_methods, reason = "the probe tests the program's global allocator")]
    // SAFETY: the layout's size is not zero.
    let probe = unsafe { std::alloc::alloc(PROBE) };
    let is_counted = TALLY.get().is_some_and(|tally| tally.allocations == 1);
    if !probe.is_null() {
        // SAFETY: the block was just allocated with this layout.
        unsafe { std::alloc::dealloc(core::hint::black_box(probe), PROBE) };
    }
    assert!(is_counted, "the global allocator is no heapwright::testing::Counting");
    TALLY.set(Some(Allocations::default()));
    let result = run();
    let used = TALLY.get().unwrap_or_default();
    drop(counting);
    (result, used)
}

const PROBE: Layout = Layout::new::<u64>();

/// Restores the outer tally, with the inner counts added.
struct Restore(Option<Allocations>);

impl Drop for Restore {
    fn drop(&mut self) {
        let inner = TALLY.get().unwrap_or_default();
        TALLY.set(self.0.map(|outer| outer.then(&inner)));
    }
}

fn count(call: Allocations) {
    // (After the end of its thread-locals, a thread counts nothing.)
    let _ = TALLY.try_with(|tally| {
        if let Some(before) = tally.get() {
            tally.set(Some(before.then(&call)));
        }
    });
}

// SAFETY: every block comes from the inner allocator with the same layout.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the trait's contract the layout's size is not 0.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            count(Allocations::of_allocation(layout.size()));
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the trait's contract the layout's size is not 0.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            count(Allocations::of_allocation(layout.size()));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(Allocations::of_free(layout.size()));
        // SAFETY: by the trait's contract the block came from the inner allocator with this layout.
        unsafe { self.0.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the trait's contract the block came from the inner allocator with this layout.
        let new = unsafe { self.0.realloc(block, layout, size) };
        if !new.is_null() {
            count(Allocations::of_reallocation(layout.size(), size));
        }
        new
    }
}
