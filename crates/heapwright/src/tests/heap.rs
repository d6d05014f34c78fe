//! Small tests of the heap that Miri and every other platform can run.
//!
//! They run on the process's own heap, at the same time, so they check no totals (`tests/` does).
//!
//! Under Miri, only these tests find a pointer without provenance, a read of uninitialised memory,
//! and two references that may not coexist. They also find races between threads that free blocks,
//! end, and adopt caches.

extern crate std;

use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;
use std::vec::Vec;

use super::*;
use crate::describe::{Kind, describe};
use crate::size_class::{SLAB_MAX, UNIT};

/// Tests hand blocks to other threads.
#[derive(Clone, Copy)]
struct Owned(*mut u8, usize);

// SAFETY: only the thread that has the value uses the block.
unsafe impl Send for Owned {}

impl Owned {
    fn new(size: usize) -> Self {
        let block = malloc(size);
        assert!(!block.is_null());
        // SAFETY: a new block of `size` bytes.
        unsafe { block.write_bytes(size as u8 | 1, size) };
        Self(block, size)
    }

    fn check(self, size: usize) {
        let bytes = self.1.min(size);
        assert!(is_all(self.0, bytes, self.1 as u8 | 1), "a block of {size} bytes changed");
    }

    fn free(self) {
        self.check(self.1);
        // SAFETY: the block is in use, and this is the last use.
        unsafe { free(self.0) };
    }
}

/// Whether all bytes of a block are `byte`. Under Miri, reads only some of them.
fn is_all(block: *const u8, size: usize, byte: u8) -> bool {
    // SAFETY: the block is in use, and all of its bytes were written.
    let bytes = unsafe { core::slice::from_raw_parts(block, size) };
    let step = if cfg!(miri) { size / 32 + 1 } else { 1 };
    bytes.iter().step_by(step).chain(bytes.last()).all(|&b| b == byte)
}

const SIZES: [usize; 14] =
    [0, 1, 16, 17, 112, 512, 513, 1000, 2049, SLAB_MAX, SLAB_MAX + 1, UNIT, UNIT + 1, 3 * UNIT - 5];

#[test]
fn blocks_keep_their_contents_and_are_apart() {
    for _ in 0..2 {
        let blocks: Vec<Owned> =
            SIZES.iter().flat_map(|&size| [size, size]).map(Owned::new).collect();
        for (at, block) in blocks.iter().enumerate() {
            assert!(block.0.addr().is_multiple_of(16));
            assert!(blocks[..at].iter().all(|other| other.0 != block.0));
        }
        blocks.into_iter().for_each(Owned::free);
    }
}

#[test]
fn lists_overflow_into_the_depot_and_back_to_slabs() {
    // More blocks of one class than the list and then the depot may hold.
    for (size, count) in [(3000, 60), (30_000, 24)] {
        for _ in 0..2 {
            let blocks: Vec<Owned> = (0..count).map(|_| Owned::new(size)).collect();
            blocks.into_iter().for_each(Owned::free);
        }
    }
}

#[test]
fn zeroed_blocks_read_as_zero_after_dirty_ones() {
    for size in SIZES {
        Owned::new(size).free();
        let block = calloc(size);
        assert!(is_all(block, size, 0), "{size}");
        // SAFETY: the block is in use, and this is the last use.
        unsafe { free(block) };
    }
}

#[test]
fn aligned_blocks_are_aligned() {
    for align in [1, 16, 64, 4096, SLAB_MAX, UNIT, 2 * UNIT] {
        for size in [0, 1, 100, 5000] {
            let block = malloc_aligned(size, align);
            assert!(!block.is_null() && block.addr().is_multiple_of(align), "{size}, {align}");
            // SAFETY: a new block of `size` bytes.
            unsafe { block.write_bytes(1, size) };
            // SAFETY: the block is in use, and of this size and alignment.
            unsafe { free_sized(block, size, align) };
        }
    }
}

#[test]
fn resized_blocks_keep_their_contents() {
    let mut block = Owned::new(10);
    for size in [16, 17, 400, 5000, 3000, 20, SLAB_MAX + 1, 2 * UNIT, 4 * UNIT + 1, UNIT, 100] {
        // SAFETY: the block is in use; the new one replaces it.
        let new = unsafe { realloc(block.0, size) };
        Owned(new, block.1).check(size);
        // SAFETY: the block is in use, and has `size` bytes.
        unsafe { new.write_bytes(size as u8 | 1, size) };
        block = Owned(new, size);
        // SAFETY: the block is in use.
        assert!(unsafe { usable_size(new) } >= size);
    }
    block.free();
}

#[test]
fn blocks_freed_by_another_thread_come_home() {
    let (send, receive) = mpsc::channel();
    let freer = thread::spawn(move || receive.into_iter().for_each(Owned::free));
    // These are several batches, so that the owner finds batches on its stack.
    for round in 0..3 {
        for at in 0..40 {
            send.send(Owned::new(24 + round * 16 + at % 2 * 1000)).unwrap();
        }
    }
    drop(send);
    freer.join().unwrap();
    (0..40).map(|_| Owned::new(24)).collect::<Vec<_>>().into_iter().for_each(Owned::free);
}

#[test]
fn blocks_outlive_their_thread() {
    let made = |sizes: [usize; 4]| thread::spawn(move || sizes.map(Owned::new)).join().unwrap();
    let first = made([20, 20, 600, UNIT]);
    // The second thread may adopt the first one's cache, while remote frees return its blocks.
    let home = thread::spawn(move || first.into_iter().for_each(Owned::free));
    let second = made([20, 21, 700, 2 * UNIT]);
    home.join().unwrap();
    second.into_iter().for_each(Owned::free);
}

#[test]
fn threads_that_end_adopt_and_free_late_at_once() {
    let rounds = if cfg!(miri) { 2 } else { 200 };
    for _ in 0..rounds {
        let start = Barrier::new(3);
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for size in [100, 100, 3000] {
                    send.send(Owned::new(size)).unwrap();
                }
                start.wait();
                // (The thread's end races with the frees of its blocks.)
                drop(send);
            });
            scope.spawn(|| {
                start.wait();
                receive.into_iter().for_each(Owned::free);
            });
            scope.spawn(|| {
                start.wait();
                [100, 3000].map(Owned::new).into_iter().for_each(Owned::free);
            });
        });
    }
}

#[test]
fn a_heap_of_its_own_is_used_by_threads_and_given_back_at_once() {
    let heap = Heap::create();
    assert!(!heap.is_null());
    let shared = Owned(heap.cast(), 0);
    let get = |heap: Owned, size: usize| {
        // SAFETY: the heap exists.
        let block = unsafe { Heap::alloc(heap.0.cast(), size, 16, false) };
        assert!(!block.is_null());
        // SAFETY: a new block of `size` bytes.
        unsafe { block.write_bytes(size as u8 | 1, size) };
        Owned(block, size)
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let shared = shared;
                let blocks = [30, 700, UNIT + 1, 30].map(|size| get(shared, size));
                // The heap's `free` and the plain `free` must both work.
                blocks[0].check(30);
                // SAFETY: the heap exists, and the block is its own.
                unsafe { Heap::free(shared.0.cast(), blocks[0].0) };
                blocks[1].free();
                blocks[2].free();
            });
        }
    });
    let last = [get(shared, 30), get(shared, 3 * UNIT)];
    assert_eq!(describe(last[0].0).kind, Kind::Small);
    // SAFETY: no code uses the heap or its blocks any more.
    unsafe { Heap::destroy(heap) };
    let again = Heap::create();
    // SAFETY: the heap exists.
    let block = unsafe { Heap::alloc(again, 100, 16, true) };
    assert!(is_all(block, 100, 0));
    // SAFETY: no code uses the heap or its blocks any more.
    unsafe { Heap::destroy(again) };
}

#[test]
fn any_address_is_described() {
    let block = Owned::new(100);
    let inside = describe(block.0.wrapping_add(99));
    assert_eq!((inside.kind, inside.block, inside.offset), (Kind::Small, block.0.addr(), 99));
    assert!(owns(block.0) && !owns(core::ptr::null()));
    for address in [0, 1, usize::MAX, block.0.addr() ^ 1 << 46] {
        assert_eq!(describe(core::ptr::without_provenance(address)).kind, Kind::Foreign);
    }
    let large = Owned::new(2 * UNIT);
    let inside = describe(large.0.wrapping_add(UNIT + 3));
    assert_eq!((inside.kind, inside.block, inside.offset), (Kind::Large, large.0.addr(), UNIT + 3));
    block.free();
    large.free();
}

#[test]
fn a_walk_finds_blocks_and_statistics_count_them() {
    let blocks = [50, 5000, UNIT].map(Owned::new);
    let mut found = 0;
    assert!(walk(&mut |seen| {
        found += usize::from(seen.in_use && blocks.iter().any(|b| b.0.addr() == seen.address));
        true
    }));
    assert_eq!(found, blocks.len());
    let mut stats = heapwright_record::Stats::zero();
    assert!(crate::stats::snapshot(&mut stats));
    assert!(stats.large_blocks >= 1 && stats.live_blocks >= 3);
    assert_eq!(stats.rss_parts(), stats.rss);
    blocks.into_iter().for_each(Owned::free);
}

#[test]
fn trimming_takes_nothing_that_is_in_use() {
    let blocks: Vec<Owned> = (0..40).map(|at| Owned::new(500 + at)).collect();
    let (gone, kept): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| block.1 % 4 != 0);
    gone.into_iter().for_each(Owned::free);
    trim(0);
    kept.into_iter().for_each(Owned::free);
}

std::thread_local! {
    static ASKED: std::cell::RefCell<Vec<observe::Event>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

/// Tests this for every function and every kind of block.
#[test]
fn the_debug_heap_hears_which_call_it_was() {
    use core::alloc::{GlobalAlloc, Layout};
    use observe::Event::{self, Request, Resize, Return};

    fn asked() -> Vec<Event> {
        ASKED.with_borrow_mut(core::mem::take)
    }
    static WATCHER: observe::Watcher = |event| {
        // Other tests run at the same time. In a thread that ends, the variable may be gone.
        let _ = ASKED.try_with(|asked| asked.borrow_mut().push(event));
        Verdict::NotOurs
    };
    observe::begin(&WATCHER);
    // In a new thread the fast word stays at the sentinel.
    let test = thread::spawn(|| {
        for size in [24, 3000, SLAB_MAX + 1] {
            let block = malloc(size);
            assert_eq!(asked(), [Request(Origin::Malloc, size, 1, false)]);
            // SAFETY: the block is in use, and this is the last use.
            unsafe { free(block) };
            assert_eq!(asked(), [Return(Origin::Malloc, None, None)]);

            let block = calloc(size);
            assert_eq!(asked(), [Request(Origin::Malloc, size, 1, true)]);
            // SAFETY: the block is in use; the new one replaces it.
            let block = unsafe { realloc(block, size + 1) };
            assert_eq!(asked()[0], Resize(Origin::Malloc, size + 1, None, None));
            // SAFETY: the block is in use, and this is its last use.
            unsafe { free_sized_from::<MALLOC>(block, size + 1) };
            assert_eq!(asked(), [Return(Origin::Malloc, Some(size + 1), None)]);

            for align in [8, 16, 64, 2 * UNIT] {
                let block = malloc_aligned(size, align);
                assert_eq!(asked(), [Request(Origin::Aligned, size, align, false)]);
                // SAFETY: the block is in use, and this is its last use.
                unsafe { free_sized(block, size, align) };
                assert_eq!(asked(), [Return(Origin::Malloc, Some(size), Some(align))]);

                let block = malloc_aligned_for::<NEW>(size, align);
                assert_eq!(asked(), [Request(Origin::New, size, align, false)]);
                // SAFETY: the block is in use, and this is its last use.
                unsafe { free_aligned_from::<NEW>(block, align) };
                assert_eq!(asked(), [Return(Origin::New, None, Some(align))]);

                let block = malloc_aligned_for::<NEW_ARRAY>(size, align);
                assert_eq!(asked(), [Request(Origin::NewArray, size, align, false)]);
                // SAFETY: the block is in use, and this is its last use.
                unsafe { free_from::<NEW_ARRAY>(block) };
                assert_eq!(asked(), [Return(Origin::NewArray, None, None)]);

                // On other systems, `Heapwright` is the system's allocator.
                let is_linux = cfg!(target_os = "linux")
                    && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
                if !(is_linux || cfg!(miri)) {
                    continue;
                }
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not 0.
                let block = unsafe { crate::Heapwright.alloc(layout) };
                assert_eq!(asked(), [Request(Origin::Rust, size, align, false)]);
                // SAFETY: the block is in use, and of this layout.
                let block = unsafe { crate::Heapwright.realloc(block, layout, size + 9) };
                assert_eq!(asked()[0], Resize(Origin::Rust, size + 9, Some(size), Some(align)));
                let layout = Layout::from_size_align(size + 9, align).unwrap();
                // SAFETY: the block is in use, of this layout, and this is its last use.
                unsafe { crate::Heapwright.dealloc(block, layout) };
                assert_eq!(asked(), [Return(Origin::Rust, Some(size + 9), Some(align))]);

                // SAFETY: the size is not 0.
                let block = unsafe { crate::Heapwright.alloc_zeroed(layout) };
                assert_eq!(asked(), [Request(Origin::Rust, size + 9, align, true)]);
                // SAFETY: the block is in use, of this layout, and this is its last use.
                unsafe { crate::Heapwright.dealloc(block, layout) };
                asked();
            }
        }
        // SAFETY: null is no block.
        unsafe { free_from::<NEW>(core::ptr::null_mut()) };
        assert_eq!(asked(), []);
    });
    test.join().unwrap();
    observe::end();
}

#[test]
fn an_origin_is_its_number() {
    let all = [
        (Origin::of::<MALLOC>(), MALLOC),
        (Origin::of::<ALIGNED>(), ALIGNED),
        (Origin::of::<NEW>(), NEW),
        (Origin::of::<NEW_ARRAY>(), NEW_ARRAY),
        (Origin::of::<RUST>(), RUST),
    ];
    for (made, number) in all {
        assert_eq!(made as u8, number);
        for (given, _) in all {
            let c = [Origin::Malloc, Origin::Aligned];
            let fits = made == given || c.contains(&made) && c.contains(&given);
            assert_eq!(made.is_freed_by(given), fits, "{made:?} {given:?}");
        }
    }
}
