//! A Rust program with a debug heap and a checked allocator. Valid use causes no finding, and a
//! mistake causes one finding.
//!
//! ```text
//! cargo test -p heapwright --features debug --test debug_global
//! ```
#![cfg(feature = "debug")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "an ordinary program may do all that this crate itself may not"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::thread;

use common::programs;
use heapwright::debug::{Checked, Config, DebugHeap, FindingKind};

const QUIET: Config = Config { quiet: true, ..Config::DEFAULT };

struct Both {
    heap: DebugHeap,
    checked: Checked<System>,
}

#[global_allocator]
static BOTH: Both = Both { heap: DebugHeap::new(QUIET), checked: Checked::with(System, QUIET) };

/// Requests of odd sizes go to `checked`, requests of even sizes to `heap`.
impl Both {
    fn of(&self, size: usize) -> &dyn GlobalAlloc {
        if size.is_multiple_of(2) { &self.heap } else { &self.checked }
    }
}

// SAFETY: a block goes back to the allocator that it came from, by its size.
unsafe impl GlobalAlloc for Both {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has more than zero bytes, as the caller promises.
        unsafe { self.of(layout.size()).alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout has more than zero bytes, as the caller promises.
        unsafe { self.of(layout.size()).alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from the heap of its size, with this layout, as the caller
        // promises.
        unsafe { self.of(layout.size()).dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size() % 2 == size % 2 {
            // SAFETY: the block came from the heap that serves both sizes, with this layout.
            return unsafe { self.of(size).realloc(block, layout, size) };
        }
        // SAFETY: the caller promises that size and alignment make a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the layout has more than zero bytes, as the caller promises.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both blocks have this many bytes, and the new block is ours.
            unsafe { block.copy_to_nonoverlapping(new, size.min(layout.size())) };
            // SAFETY: the block came with this layout, as the caller promises, and was copied.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

fn collections(seed: u64) {
    programs::collections(seed, 3000, 500, |_| ());
    programs::over_aligned();
}

fn threads() {
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                programs::dying_threads(20);
                collections(seed);
            });
        }
        programs::messages(200);
    });
}

/// One test, because it counts the findings of the whole process.
#[test]
fn what_std_does_is_right_and_what_is_wrong_is_told() {
    collections(1);
    threads();
    programs::panics(10);
    BOTH.heap.sweep();
    BOTH.checked.sweep();
    assert_eq!((BOTH.heap.last_finding(), BOTH.checked.last_finding()), (None, None));
    assert!(BOTH.heap.live().blocks > 0 && BOTH.checked.live().blocks > 0);
    for layout in [Layout::new::<[u8; 40]>(), Layout::new::<[u8; 41]>()] {
        // SAFETY: the size is not zero.
        let block = unsafe { std::alloc::alloc(layout) };
        // SAFETY: the block is ours.
        unsafe { std::alloc::dealloc(block, layout) };
        // SAFETY: the second free is reported, and has no effect.
        unsafe { std::alloc::dealloc(block, layout) };
    }
    assert_eq!((BOTH.heap.findings(), BOTH.checked.findings()), (1, 1));
    assert_eq!(BOTH.heap.last_finding().unwrap().kind, FindingKind::DoubleFree);
    let finding = BOTH.checked.last_finding().unwrap();
    assert_eq!((finding.kind, finding.size), (FindingKind::DoubleFree, 41));
    collections(2);
    assert_eq!((BOTH.heap.findings(), BOTH.checked.findings()), (1, 1));
}
