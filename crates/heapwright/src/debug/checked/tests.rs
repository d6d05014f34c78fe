//! Tests each mistake with another allocator's blocks, and each right use.

extern crate std;

use std::alloc::System;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::vec::Vec;

use super::*;
use crate::debug::Detect;
use crate::debug::tests::Sent;

struct Counted(AtomicIsize);

// SAFETY: the methods pass all calls on to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(1, Ordering::Relaxed);
        // SAFETY: a layout of more than zero bytes, as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the block came from this allocator with this layout, as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

const QUIET: Config = Config { quiet: true, ..Config::DEFAULT };

fn quiet(config: Config) -> Checked<Counted> {
    Checked::with(Counted(AtomicIsize::new(0)), Config { quiet: true, ..config })
}

fn alloc(heap: &impl GlobalAlloc, size: usize, align: usize) -> *mut u8 {
    let layout = Layout::from_size_align(size, align).unwrap();
    // SAFETY: the checker takes sizes of 0, too.
    let block = unsafe { heap.alloc(layout) };
    assert!(!block.is_null() && block.addr().is_multiple_of(align));
    block
}

fn free(heap: &impl GlobalAlloc, block: *mut u8, size: usize, align: usize) {
    let layout = Layout::from_size_align(size, align).unwrap();
    // SAFETY: a mistake becomes a finding, and frees nothing.
    unsafe { heap.dealloc(block, layout) };
}

fn write(block: *mut u8, at: isize) {
    // SAFETY: the byte is in the block or in the checker's room around it.
    unsafe { block.wrapping_offset(at).write(0x41) };
}

fn last(heap: &Checked<Counted>) -> Finding {
    heap.last_finding().expect("a finding")
}

#[test]
fn blocks_are_apart_aligned_and_given_back() {
    let heap = quiet(QUIET);
    let mut blocks = Vec::new();
    for &size in &[0, 1, 17, 100, 15, 16, 5000, 3_000_000][..if cfg!(miri) { 4 } else { 8 }] {
        for align in [1, 8, 16, 64, 4096] {
            let block = alloc(&heap, size, align);
            // SAFETY: ours.
            unsafe { block.write_bytes(size as u8, size) };
            blocks.push((block, size, align));
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the checker takes sizes of 0, too.
            let zeroed = unsafe { heap.alloc_zeroed(layout) };
            // SAFETY: ours.
            assert!((0..size).step_by(97).all(|at| unsafe { zeroed.wrapping_add(at).read() } == 0));
            free(&heap, zeroed, size, align);
        }
    }
    assert_eq!(heap.live().blocks, blocks.len());
    for (block, size, align) in blocks {
        // SAFETY: ours.
        let byte = |at| unsafe { block.wrapping_add(at).read() };
        assert!((0..size).step_by(97).all(|at| byte(at) == size as u8));
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: ours, of this layout.
        let new = unsafe { heap.realloc(block, layout, size + 100) };
        // SAFETY: ours.
        let byte = |at| unsafe { new.wrapping_add(at).read() };
        assert!((0..size).step_by(97).all(|at| byte(at) == size as u8));
        free(&heap, new, size + 100, align);
    }
    heap.sweep();
    assert_eq!((heap.last_finding(), heap.live()), (None, Leaks::default()));
    assert_eq!(heap.deinit(), Leaks::default());
}

#[test]
fn writes_around_a_block_are_found_to_the_byte() {
    for &size in if cfg!(miri) { &[0, 40][..] } else { &[0, 1, 15, 16, 40, 1000] } {
        let places = (-32..0).chain(size..size + 32).step_by(if cfg!(miri) { 9 } else { 1 });
        for at in places {
            let heap = quiet(QUIET);
            let block = alloc(&heap, size as usize, 8);
            write(block, at);
            free(&heap, block, size as usize, 8);
            let finding = last(&heap);
            let kind = if at < 0 { FindingKind::Underflow } else { FindingKind::Overflow };
            assert_eq!((finding.kind, finding.offset, finding.value), (kind, at as i64, 0x41));
            assert_eq!((heap.findings(), heap.deinit().blocks), (1, 0));
        }
    }
}

#[test]
fn both_sides_are_reported_in_a_sweep_and_once() {
    let heap = quiet(QUIET);
    let block = alloc(&heap, 24, 8);
    write(block, -1);
    write(block, 24);
    heap.sweep();
    heap.sweep();
    assert_eq!((heap.findings(), last(&heap).call), (2, Call::Sweep));
    // SAFETY: ours, of this layout.
    let block = unsafe { heap.realloc(block, Layout::new::<[u64; 3]>(), 80) };
    write(block, 83);
    // SAFETY: ours, of this layout.
    let block = unsafe { heap.realloc(block, Layout::new::<[u64; 10]>(), 8) };
    assert_eq!((heap.findings(), last(&heap).offset), (3, 83));
    free(&heap, block, 8, 8);
    assert_eq!((heap.findings(), heap.deinit().blocks), (3, 0));
}

#[test]
fn freed_blocks_are_known_while_they_rest_and_afterwards() {
    let heap = quiet(Config { memory: 4096, ..QUIET });
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 40, 8);
    free(&heap, block, 40, 8);
    assert_eq!(last(&heap).kind, FindingKind::DoubleFree);
    // SAFETY: a mistake, which is reported.
    let other = unsafe { heap.realloc(block, Layout::new::<[u64; 5]>(), 60) };
    assert_eq!(last(&heap).kind, FindingKind::ReallocAfterFree);
    free(&heap, other, 60, 8);
    write(block, 7);
    for _ in 0..if cfg!(miri) { 20 } else { 100 } {
        let other = alloc(&heap, 200, 8);
        free(&heap, other, 200, 8);
    }
    let finding = last(&heap);
    assert_eq!(
        (finding.kind, finding.offset, finding.call),
        (FindingKind::WriteAfterFree, 7, Call::Retire)
    );
    assert_eq!((finding.block, heap.findings()), (block.addr() as u64, 3));
    assert!(heap.inner().0.load(Ordering::Relaxed) < 30, "the quarantine is bounded");
    heap.deinit();
}

#[test]
fn what_is_no_block_is_reported_and_not_touched() {
    let heap = quiet(QUIET);
    let block = alloc(&heap, 40, 8);
    free(&heap, block.wrapping_add(12), 40, 8);
    assert_eq!((last(&heap).kind, last(&heap).offset), (FindingKind::InteriorFree, 12));
    for wild in [8, 0x1000, 1 << 40, usize::MAX - 7] {
        free(&heap, ptr::without_provenance_mut(wild), 40, 8);
        assert_eq!(last(&heap).kind, FindingKind::InvalidFree);
    }
    let layout = Layout::new::<u64>();
    let wild = ptr::without_provenance_mut(16);
    // SAFETY: a mistake, which is reported.
    let new = unsafe { heap.realloc(wild, layout, 10) };
    assert_eq!(last(&heap).kind, FindingKind::InvalidRealloc);
    free(&heap, new, 10, 8);
    free(&heap, block, 40, 8);
    assert_eq!((heap.findings(), heap.deinit().blocks), (6, 0));
}

#[test]
fn sizes_and_alignments_are_compared() {
    let heap = quiet(QUIET);
    let block = alloc(&heap, 32, 8);
    free(&heap, block, 24, 8);
    assert_eq!((last(&heap).kind, last(&heap).given_size), (FindingKind::SizeMismatch, 24));
    let block = alloc(&heap, 32, 8);
    free(&heap, block, 32, 16);
    assert_eq!((last(&heap).kind, last(&heap).given_align), (FindingKind::AlignmentMismatch, 16));
    assert_eq!(heap.deinit().blocks, 0);
}

#[test]
fn each_detection_can_be_switched_off_and_then_sees_nothing() {
    let without = |switch: fn(&mut Detect)| {
        let mut detect = Detect::ALL;
        switch(&mut detect);
        quiet(Config { detect, ..QUIET })
    };
    let heap = without(|d| d.double_free = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 40, 8);
    free(&heap, block, 40, 8);
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
    let heap = without(|d| d.canary = false);
    let block = alloc(&heap, 40, 8);
    write(block, 40);
    free(&heap, block, 40, 8);
    assert_eq!(heap.findings(), 0);
    let heap = without(|d| d.fill = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 40, 8);
    write(block, 4);
    heap.sweep();
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
    let heap = without(|d| d.size = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 24, 1);
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}

#[test]
fn leaks_are_counted_the_limit_is_kept_and_all_goes_back() {
    let counted = Counted(AtomicIsize::new(0));
    struct Borrowed<'a>(&'a Counted);
    // SAFETY: the methods pass all calls on to `Counted`.
    unsafe impl GlobalAlloc for Borrowed<'_> {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: a layout of more than zero bytes, as the caller promises.
            unsafe { self.0.alloc(layout) }
        }
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller promises that the block came from here with this layout.
            unsafe { self.0.dealloc(block, layout) }
        }
    }
    let heap = Checked::with(Borrowed(&counted), Config { limit: 10_000, ..QUIET });
    let blocks: Vec<_> = (0..10).map(|_| alloc(&heap, 1000, 8)).collect();
    // SAFETY: the size is not zero.
    assert!(unsafe { heap.alloc(Layout::new::<u8>()) }.is_null());
    free(&heap, blocks[0], 1000, 8);
    assert_eq!((counted.0.load(Ordering::Relaxed), heap.findings()), (10, 0));
    assert_eq!(heap.deinit(), Leaks { blocks: 9, bytes: 9000 });
    assert_eq!(counted.0.load(Ordering::Relaxed), 0);
}

#[test]
fn threads_free_each_others_blocks() {
    let heap = quiet(Config { memory: 64 << 10, ..QUIET });
    let shared = &heap;
    let (send, receive) = std::sync::mpsc::channel::<Sent>();
    let rounds = if cfg!(miri) { 20 } else { 3000 };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let send = send.clone();
            scope.spawn(move || {
                for round in 0..rounds {
                    let size = 1 + round * 7 % 600;
                    let block = alloc(shared, size, 8);
                    // SAFETY: ours.
                    unsafe { block.write_bytes(3, size) };
                    match round % 2 {
                        0 => free(shared, block, size, 8),
                        _ => send.send(Sent(block, size)).unwrap(),
                    }
                }
            });
        }
        drop(send);
        for Sent(block, size) in receive {
            free(shared, block, size, 8);
        }
    });
    assert_eq!((heap.findings(), heap.live().blocks), (0, 0));
    heap.deinit();
}

#[test]
fn an_allocator_that_takes_all_back_at_once_is_believed() {
    // A restarted bump allocator hands out addresses that are still live in the checker.
    struct Bump(std::cell::UnsafeCell<[u128; 64]>);
    // SAFETY: one thread uses one block at a time.
    unsafe impl GlobalAlloc for Bump {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            assert!(layout.size() <= 1024 && layout.align() <= 16);
            self.0.get().cast()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }
    let heap = Checked::with(Bump([0; 64].into()), Config { memory: 1, ..QUIET });
    let first = alloc(&heap, 100, 8);
    let again = alloc(&heap, 200, 8);
    assert_eq!((first, heap.live().bytes), (again, 200));
    free(&heap, again, 200, 8);
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}
