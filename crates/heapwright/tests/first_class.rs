//! First-class heaps: made, used by any thread, destroyed at once.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::thread;

use common::{Owned, Random, SLAB_MAX, UNIT, stats};
use heapwright::heap::{self, Heap};
use heapwright::{BlockState, Kind, describe};

#[derive(Clone, Copy)]
struct Shared(*mut Heap);

// SAFETY: any thread may use a heap.
unsafe impl Send for Shared {}

impl Shared {
    fn create() -> Self {
        let heap = Heap::create();
        assert!(!heap.is_null());
        Self(heap)
    }

    fn alloc(self, size: usize, align: usize) -> Owned {
        // SAFETY: the tests use heaps that exist.
        let at = unsafe { Heap::alloc(self.0, size, align, false) };
        assert!(at.addr().is_multiple_of(align));
        Owned::adopt(at, size)
    }

    fn free(self, block: Owned) {
        // SAFETY: the heap exists, the block is its own, and this is the last use.
        unsafe { Heap::free(self.0, block.into_raw()) };
    }

    fn destroy(self) {
        // SAFETY: no code uses the heap or its blocks afterwards.
        unsafe { Heap::destroy(self.0) };
    }
}

fn heaps_are_shared_by_threads_and_leave_nothing_behind() {
    for round in 0..20 {
        let heaps = [Shared::create(), Shared::create()];
        assert_eq!(stats().heaps_live, 2);
        let threads: Vec<_> = (0..3)
            .map(|number| {
                thread::spawn(move || {
                    let mut random = Random::new(round * 3 + number + 1);
                    let mut blocks: Vec<(usize, Owned)> = Vec::new();
                    for _ in 0..400 {
                        let which = random.below(2);
                        match random.below(6) {
                            0..=3 => {
                                let size = random.size();
                                let align = 1 << random.below(13);
                                blocks.push((which, heaps[which].alloc(size, align)));
                            }
                            _ if blocks.is_empty() => {}
                            4 => {
                                let (of, block) = blocks.swap_remove(random.below(blocks.len()));
                                heaps[of].free(block);
                            }
                            _ => blocks.swap_remove(random.below(blocks.len())).1.free(),
                        }
                    }
                    blocks
                })
            })
            .collect();
        let blocks: Vec<_> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let count = blocks.len();
        // The threads have ended; their blocks belong to the heaps.
        let now = stats();
        assert_eq!(now.live_blocks, count as u64);
        let owner = |at: *mut u8| describe(at).owner;
        for (of, block) in &blocks {
            assert!(block.is_intact(block.size));
            assert_eq!(owner(block.at) == owner(blocks[0].1.at), *of == blocks[0].0);
        }
        heaps[0].destroy();
        // The other heap's blocks are unchanged.
        let mut left = Vec::new();
        for (of, block) in blocks {
            if of == 1 {
                left.push(block.into_raw());
            } else {
                let found = describe(block.at);
                assert_eq!(found.kind, Kind::Free, "{found:?}");
                assert!(!heap::owns(block.at));
            }
        }
        assert_eq!(stats().live_blocks, left.len() as u64);
        heaps[1].destroy();
        let end = stats();
        assert_eq!((end.heaps_live, end.live_blocks, end.large_blocks), (0, 0, 0));
    }
    // Forty heaps were made, two at a time.
    let made = stats().caches_made;
    assert!(made <= 2 + 4 + 1, "{made} caches");
    heap::trim(0);
    assert_eq!(stats().rss_live, 0);
}

fn a_heaps_blocks_are_zeroed_and_resized_like_any_other() {
    let heap = Shared::create();
    for size in [1, 100, 3000, SLAB_MAX, SLAB_MAX + 1, 3 * UNIT] {
        heap.free(heap.alloc(size, 16));
        // SAFETY: the heap exists.
        let at = unsafe { Heap::alloc(heap.0, size, 16, true) };
        // SAFETY: the block has `size` initialised bytes.
        let bytes = unsafe { std::slice::from_raw_parts(at, size) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        let mut block = Owned::adopt(at, size);
        block.realloc(2 * size);
        block.realloc(size);
        assert_eq!(describe(block.at).state, BlockState::InUse);
        block.free();
    }
    heap.destroy();
}

fn requests_that_no_heap_can_serve_are_refused() {
    let heap = Shared::create();
    for (size, align) in
        [(usize::MAX, 16), (isize::MAX as usize + 1, 16), (1, 0), (1, 3), (1 << 60, 16)]
    {
        // SAFETY: the heap exists.
        assert!(unsafe { Heap::alloc(heap.0, size, align, false) }.is_null());
    }
    heap.free(heap.alloc(1, 1));
    heap.destroy();
    // SAFETY: null does nothing.
    unsafe { Heap::destroy(std::ptr::null_mut()) };
}

/// One test, because the counts are those of the whole process.
#[test]
fn first_class_heaps() {
    heaps_are_shared_by_threads_and_leave_nothing_behind();
    a_heaps_blocks_are_zeroed_and_resized_like_any_other();
    requests_that_no_heap_can_serve_are_refused();
}
