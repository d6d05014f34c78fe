//! The library itself: the program of the PR on a `DebugHeap`.
//!
//! It finds buckets by the address map. No stacks, no guards, no fills or checks of
//! bytes: what is left is the heap's own work, of which the search is a part.

use std::alloc::{GlobalAlloc as _, Layout};
use std::hint::black_box;
use std::ptr;

use heapwright::debug::{Config, DebugHeap, Detect, Guard, Leaks};

use crate::{Rounds, SLOTS};

const BLOCK: Layout = Layout::new::<[u8; 128]>();
const CONFIG: Config = Config {
    traces: 0,
    guard: Guard::Never,
    detect: Detect { fill: false, canary: false, ..Detect::ALL },
    slots: SLOTS,
    quiet: true,
    ..Config::DEFAULT
};

/// A heap of its own, and what survives in it.
pub(crate) struct Heap {
    heap: DebugHeap,
    survivors: Vec<*mut u8>,
}

impl Heap {
    fn make(&self) -> *mut u8 {
        // SAFETY: the size is not zero.
        let block = unsafe { self.heap.alloc(black_box(BLOCK)) };
        assert!(!block.is_null(), "no memory");
        block
    }

    fn free(&self, block: *mut u8) {
        // SAFETY: `make` made the block with this layout, and each is freed once.
        unsafe { self.heap.dealloc(block, black_box(BLOCK)) }
    }
}

impl Rounds for Heap {
    fn new(rounds: usize) -> Self {
        Self { heap: DebugHeap::new(CONFIG), survivors: vec![ptr::null_mut(); rounds] }
    }

    fn round(&mut self, number: u32) {
        let slots: [*mut u8; SLOTS] = std::array::from_fn(|_| self.make());
        self.survivors[number as usize] = slots[0];
        slots[1..].iter().for_each(|&slot| self.free(slot));
    }

    fn last_free(&mut self, number: u32) {
        self.free(self.survivors[number as usize]);
    }

    fn bytes(&self) -> usize {
        self.heap.buckets().1
    }

    fn end(self) {
        assert_eq!((self.heap.findings(), self.heap.deinit()), (0, Leaks::default()));
    }
}
