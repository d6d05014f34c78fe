//! Tests of the debug heap in a Rust program: each mistake, each right use.

extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use std::collections::HashSet;
use std::vec::Vec;

#[cfg(target_os = "linux")]
use super::shape::PAGE;
use super::*;

fn quiet(config: Config) -> DebugHeap {
    DebugHeap::new(Config { quiet: true, ..config })
}

/// Makes a heap without guards, so that a mistake does not end the test.
fn unguarded() -> DebugHeap {
    quiet(Config { guard: Guard::Never, ..Config::DEFAULT })
}

fn alloc(heap: &DebugHeap, size: usize, align: usize) -> *mut u8 {
    let layout = Layout::from_size_align(size, align).unwrap();
    // SAFETY: a debug heap takes sizes of 0, too.
    let block = unsafe { heap.alloc(layout) };
    assert!(!block.is_null() && block.addr().is_multiple_of(align));
    block
}

fn free(heap: &DebugHeap, block: *mut u8, size: usize, align: usize) {
    let layout = Layout::from_size_align(size, align).unwrap();
    // SAFETY: a mistake becomes a finding, and frees nothing.
    unsafe { heap.dealloc(block, layout) };
}

pub(super) struct Sent(pub(super) *mut u8, pub(super) usize);

// SAFETY: a block may be given back by any thread.
unsafe impl Send for Sent {}
// SAFETY: only the address is sent, and a block may be given back by any thread.
unsafe impl Sync for Sent {}

fn kind(heap: &DebugHeap) -> FindingKind {
    heap.last_finding().expect("a finding").kind
}

#[test]
fn blocks_of_all_sizes_are_apart_and_come_back() {
    // Under Miri there are no guards.
    for &guard in &[Guard::Never, Guard::Sample, Guard::All][..if cfg!(miri) { 1 } else { 3 }] {
        let heap = quiet(Config { guard, ..Config::DEFAULT });
        let mut blocks = Vec::new();
        let sizes = [0, 1, 15, 16, 17, 40, 128, 1000, 4096, 5000, 28_000, 30_000, 300_000];
        let sizes = &sizes[..if cfg!(miri) { 8 } else { sizes.len() }];
        for round in 0..if cfg!(miri) { 1 } else { 20 } {
            for &size in sizes {
                for align in [1, 16, 64, 4096, 8192] {
                    let block = alloc(&heap, size + round, align);
                    // SAFETY: this many bytes are ours.
                    unsafe { block.write_bytes(size as u8, size + round) };
                    blocks.push((block, size + round, align, size as u8));
                }
            }
        }
        assert_eq!(heap.live().blocks, blocks.len());
        for (block, size, align, value) in blocks {
            for at in (0..size).step_by(97) {
                // SAFETY: within the block.
                assert_eq!(unsafe { block.wrapping_add(at).read() }, value);
            }
            free(&heap, block, size, align);
        }
        heap.sweep();
        assert_eq!(heap.last_finding(), None);
        assert_eq!(heap.deinit(), Leaks::default());
    }
}

#[test]
fn zeroed_blocks_are_zero_wherever_they_come_from() {
    let heap = unguarded();
    for &size in &[8, 40, 1000, 20_000, 100_000][..if cfg!(miri) { 3 } else { 5 }] {
        let layout = Layout::from_size_align(size, 8).unwrap();
        for _ in 0..if cfg!(miri) { 20 } else { 3000 } {
            // SAFETY: the size is not zero.
            let block = unsafe { heap.alloc_zeroed(layout) };
            for at in (0..size).step_by(if cfg!(miri) { 601 } else { 61 }) {
                // SAFETY: within the block.
                assert_eq!(unsafe { block.wrapping_add(at).read() }, 0);
            }
            // SAFETY: the block has this many bytes.
            unsafe { block.write_bytes(1, size) };
            free(&heap, block, size, 8);
        }
    }
    assert_eq!(heap.findings(), 0);
    heap.deinit();
}

#[test]
fn a_double_free_is_seen_at_once_and_after_the_memory_went_back() {
    for guard in [Guard::Never, Guard::All] {
        for size in if cfg!(miri) { [24, 900, 3000] } else { [24, 3000, 400_000] } {
            let heap = quiet(Config { guard, ..Config::DEFAULT });
            let block = alloc(&heap, size, 16);
            free(&heap, block, size, 16);
            free(&heap, block, size, 16);
            let finding = heap.last_finding().unwrap();
            assert_eq!(finding.kind, FindingKind::DoubleFree);
            assert_eq!((finding.size, finding.offset), (size as u64, 0));
            for _ in 0..if cfg!(miri) { 9 } else { 200 } {
                let other = alloc(&heap, size, 16);
                free(&heap, other, size, 16);
            }
            assert_eq!(heap.findings(), 1);
            if !(guard == Guard::Never && size == 400_000) {
                free(&heap, block, size, 16);
                assert_eq!(heap.findings(), 2, "{guard:?} {size}");
            }
            heap.deinit();
        }
    }
}

#[test]
fn pointers_into_blocks_and_beside_them_are_distinguished() {
    let heap = unguarded();
    let block = alloc(&heap, 96, 16);
    free(&heap, block.wrapping_add(12), 96, 16);
    assert_eq!((kind(&heap), heap.last_finding().unwrap().offset), (FindingKind::InteriorFree, 12));
    let local = 0u64;
    free(&heap, core::ptr::from_ref(&local).cast_mut().cast(), 8, 8);
    assert_eq!(kind(&heap), FindingKind::InvalidFree);
    // No block was handed out there.
    free(&heap, block.wrapping_add(112), 96, 16);
    assert_eq!(kind(&heap), FindingKind::InvalidFree);
    free(&heap, block, 96, 16);
    assert_eq!(heap.findings(), 3);
    heap.deinit();
}

#[test]
fn sizes_and_alignments_are_compared() {
    let heap = unguarded();
    let block = alloc(&heap, 32, 8);
    free(&heap, block, 24, 8);
    let finding = heap.last_finding().unwrap();
    assert_eq!((finding.kind, finding.given_size), (FindingKind::SizeMismatch, 24));
    let block = alloc(&heap, 32, 8);
    free(&heap, block, 32, 16);
    assert_eq!(kind(&heap), FindingKind::AlignmentMismatch);
    assert_eq!(heap.deinit().blocks, 0);
}

#[test]
fn every_byte_beyond_a_block_is_watched() {
    let sizes = [0, 1, 8, 15, 16, 23, 40, 100, 1000, 5000, 28_000];
    for &size in &sizes[if cfg!(miri) { 5..8 } else { 0..11 }] {
        for beyond in 0..if cfg!(miri) { 3 } else { 9 } {
            let heap = unguarded();
            let block = alloc(&heap, size, 1);
            assert_eq!(process::find_block(block.addr()).unwrap().size, size);
            // SAFETY: the byte is the heap's own.
            unsafe { block.wrapping_add(size + beyond).write(0x41) };
            // Damage in the next slot's bytes is no overflow of this block.
            let shape = shape::of(shape::class_for(size, 1).unwrap_or(0), 4096);
            let seen = size + beyond < shape.slot as usize;
            free(&heap, block, size, 1);
            if seen {
                let finding = heap.last_finding().expect("a finding");
                assert_eq!(finding.kind, FindingKind::Overflow, "{size} {beyond}");
                assert_eq!((finding.offset, finding.value), ((size + beyond) as i64, 0x41));
            }
            heap.deinit();
        }
    }
}

#[test]
fn every_byte_before_a_block_is_watched() {
    for size in if cfg!(miri) { &[24, 40][..] } else { &[16, 24, 40, 100, 5000] } {
        let size = *size;
        for before in [1, 2, 4, 7] {
            let heap = unguarded();
            let first = alloc(&heap, size, 1);
            let second = alloc(&heap, size, 1);
            for block in [first, second] {
                // SAFETY: the byte is the heap's own.
                unsafe { block.wrapping_sub(before).write(0) };
                free(&heap, block, size, 1);
                let finding = heap.last_finding().expect("a finding");
                let slack =
                    shape::of(shape::class_for(size, 1).unwrap(), 4096).slot as usize - size;
                if block == first || before * 2 < slack {
                    assert_eq!(finding.kind, FindingKind::Underflow, "{size} {before}");
                    assert_eq!(finding.offset, -(before as i64));
                }
            }
            heap.deinit();
        }
    }
}

#[test]
fn a_write_after_free_is_found_in_a_sweep_and_before_reuse() {
    for late in [false, true] {
        let heap = unguarded();
        let blocks: Vec<_> = (0..100).map(|_| alloc(&heap, 40, 8)).collect();
        free(&heap, blocks[50], 40, 8);
        // SAFETY: a mistake; the bytes are still the heap's.
        unsafe { blocks[50].wrapping_add(8).write(0x42) };
        if late {
            for (at, &block) in blocks.iter().enumerate() {
                if at != 50 {
                    free(&heap, block, 40, 8);
                }
            }
            heap.sweep();
        } else {
            heap.sweep();
        }
        let finding = heap.last_finding().unwrap();
        assert_eq!(finding.kind, FindingKind::WriteAfterFree);
        assert_eq!((finding.offset, finding.value, finding.size), (8, 0x42, 40));
        heap.sweep();
        assert_eq!(heap.findings(), 1, "reported once");
        heap.deinit();
    }
}

#[test]
fn realloc_moves_and_copies_and_remembers_the_old_block() {
    let heap = unguarded();
    let layout = Layout::from_size_align(100, 8).unwrap();
    let block = alloc(&heap, 100, 8);
    // SAFETY: ours.
    unsafe { block.write_bytes(9, 100) };
    // SAFETY: ours, with this layout.
    let new = unsafe { heap.realloc(block, layout, 50) };
    assert!(new != block);
    // SAFETY: ours.
    assert!((0..50).all(|at| unsafe { new.wrapping_add(at).read() } == 9));
    // SAFETY: a mistake, which the heap reports.
    let other = unsafe { heap.realloc(block, layout, 60) };
    assert_eq!(kind(&heap), FindingKind::ReallocAfterFree);
    free(&heap, new, 50, 8);
    free(&heap, other, 60, 8);
    assert_eq!(heap.findings(), 1);
    assert_eq!(heap.deinit().blocks, 0);
}

/// Grows a block in steps, and shrinks it again. Checks its contents. Returns how often it moved.
fn moves_of_a_growing_block(heap: &DebugHeap, step: usize, steps: usize) -> usize {
    let mut block = alloc(heap, step, 16);
    let (mut size, mut moves) = (step, 0);
    for to in (2..=steps).chain((1..steps).rev()) {
        // SAFETY: the last step of the block's.
        unsafe { block.wrapping_add(size - step).write_bytes((size / step) as u8, step) };
        // SAFETY: ours, with this layout.
        let new =
            unsafe { heap.realloc(block, Layout::from_size_align(size, 16).unwrap(), to * step) };
        moves += usize::from(new != block);
        (block, size) = (new, to * step);
        for at in 1..to.min(steps - 1) {
            let bytes = [block.wrapping_add((at - 1) * step), block.wrapping_add(at * step - 1)];
            // SAFETY: within the block.
            assert!(bytes.iter().all(|byte| unsafe { byte.read() } == at as u8), "{at} of {to}");
        }
    }
    free(heap, block, size, 16);
    assert_eq!((heap.findings(), heap.live().blocks), (0, 0));
    moves
}

#[test]
#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
fn large_blocks_that_grow_stay_where_there_is_room() {
    let steps = 100;
    for step in [4096 * 16, 4096 * 16 + 48] {
        let moves = |config| moves_of_a_growing_block(&quiet(config), step, steps);
        for guard in [Guard::Never, Guard::Sample] {
            let moves = moves(Config { guard, ..Config::DEFAULT });
            // It moves at each step in the first half MiB, and when its room is used up.
            assert!(moves < 8 + 8 + 20, "{guard:?}: {moves}");
        }
        assert_eq!(moves(Config { guard: Guard::All, ..Config::DEFAULT }), 2 * (steps - 1));
        assert_eq!(moves(Config { retain: true, ..Config::DEFAULT }), 2 * (steps - 1));
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
fn blocks_that_grow_in_small_steps_move_seldom() {
    for step in [8, 24, 100] {
        let config = Config { guard: Guard::Never, ..Config::DEFAULT };
        let moves = moves_of_a_growing_block(&quiet(config), step, 500);
        assert!(moves < 50, "{step}: {moves}");
    }
    // A doubling moves the block, and so does each resize at another place.
    let heap = unguarded();
    let mut block = alloc(&heap, 16, 16);
    for size in [16, 32, 64, 128, 256, 512, 1024] {
        // SAFETY: ours, with this layout.
        let new =
            unsafe { heap.realloc(block, Layout::from_size_align(size, 16).unwrap(), 2 * size) };
        assert!(new != block, "{size}");
        block = new;
    }
    free(&heap, block, 2048, 16);
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}

#[test]
fn the_end_of_a_small_block_that_stayed_is_watched() {
    let heap = unguarded();
    let layout = |size| Layout::from_size_align(size, 16).unwrap();
    let mut block = alloc(&heap, 100, 16);
    let mut stays = Vec::new();
    for (from, to) in [(100, 104), (104, 112), (112, 120), (120, 130), (130, 110)] {
        // SAFETY: ours, with this layout.
        let new = unsafe { heap.realloc(block, layout(from), to) };
        stays.push(core::mem::replace(&mut block, new) == new);
    }
    assert_eq!(stays, [false, false, true, true, true]);
    // SAFETY: a mistake, in memory of the heap's.
    unsafe { block.wrapping_add(110).write(1) };
    free(&heap, block, 110, 16);
    assert_eq!(kind(&heap), FindingKind::Overflow);
    assert_eq!(heap.last_finding().unwrap().offset, 110);
    free(&heap, block, 110, 16);
    assert_eq!(kind(&heap), FindingKind::DoubleFree);
    heap.deinit();
}

#[test]
#[cfg_attr(miri, ignore = "large blocks")]
fn the_end_of_a_block_that_stayed_is_watched() {
    let heap = unguarded();
    let size = 1 << 20;
    let layout = |size| Layout::from_size_align(size, 16).unwrap();
    // SAFETY: ours, with this layout.
    let block = unsafe { heap.realloc(alloc(&heap, size, 16), layout(size), size + 5000) };
    // SAFETY: the block that the first one became, with its layout.
    let same = unsafe { heap.realloc(block, layout(size + 5000), size + 9000) };
    assert_eq!(same, block);
    // SAFETY: a mistake, in memory of the heap's.
    unsafe { block.wrapping_add(size + 9000).write(1) };
    free(&heap, block, size + 9000, 16);
    assert_eq!(kind(&heap), FindingKind::Overflow);
    assert_eq!(heap.last_finding().unwrap().offset, size as i64 + 9000);
    free(&heap, block, size + 9000, 16);
    assert_eq!(kind(&heap), FindingKind::DoubleFree);
    assert_eq!(heap.findings(), 2);
    heap.deinit();
}

#[test]
fn leaks_are_counted_and_the_limit_is_kept() {
    let heap = quiet(Config { limit: 10_000, guard: Guard::Never, ..Config::DEFAULT });
    let blocks: Vec<_> = (0..10).map(|_| alloc(&heap, 1000, 8)).collect();
    let layout = Layout::from_size_align(1, 1).unwrap();
    // SAFETY: the size is not zero.
    assert!(unsafe { heap.alloc(layout) }.is_null());
    free(&heap, blocks[0], 1000, 8);
    assert!(!alloc(&heap, 1000, 8).is_null());
    assert_eq!(heap.deinit(), Leaks { blocks: 10, bytes: 10_000 });
}

#[test]
fn all_buckets_but_the_current_ones_are_full() {
    // The worst case of Zig's heap: one block of each bucket survives.
    let heap = quiet(Config { slots: 32, guard: Guard::Never, traces: 0, ..Config::DEFAULT });
    let mut kept = Vec::new();
    let rounds = if cfg!(miri) { 4 } else { 2000 };
    for _ in 0..rounds {
        kept.push(alloc(&heap, 128, 8));
        for _ in 0..31 {
            let block = alloc(&heap, 128, 8);
            free(&heap, block, 128, 8);
        }
    }
    let (buckets, _) = heap.buckets();
    // One more bucket may have been opened before the class's blocks were known to stay.
    assert!((rounds..=rounds + 1).contains(&buckets), "{buckets} for {rounds} rounds");
    let (live, peak) = (128 * rounds as u64, heap.peak_bytes());
    assert!((live..=live + 32 * 128).contains(&peak), "{peak} at most, {live} now");
    for block in kept {
        free(&heap, block, 128, 8);
    }
    assert!(heap.buckets().0 <= 2);
    assert_eq!(heap.findings(), 0);
    assert_eq!(heap.deinit().blocks, 0);
}

/// Frees all but every `stays`th of `count` blocks. Returns the blocks that stay.
fn make_sparse(heap: &DebugHeap, count: usize, stays: usize) -> Vec<*mut u8> {
    make_sparse_and_freed(heap, count, stays).0
}

fn make_sparse_and_freed(
    heap: &DebugHeap,
    count: usize,
    stays: usize,
) -> (Vec<*mut u8>, Vec<*mut u8>) {
    let all: Vec<_> = (0..count).map(|_| alloc(heap, 100, 1)).collect();
    let (mut kept, mut freed) = (Vec::new(), Vec::new());
    for (at, block) in all.into_iter().enumerate() {
        if at % stays == 0 {
            // SAFETY: the block's first byte.
            unsafe { block.write(at as u8) };
            kept.push(block);
        } else {
            freed.push(block);
        }
    }
    freed.iter().for_each(|&block| free(heap, block, 100, 1));
    (kept, freed)
}

fn bytes_of(block: *mut u8) -> [u8; 100] {
    // SAFETY: the block's bytes.
    unsafe { block.cast::<[u8; 100]>().read() }
}

/// Enough blocks to use up the allowed idle bytes, and to let freed blocks wait long enough.
const MANY_BLOCKS: usize = if cfg!(miri) { 1000 } else { 400_000 };

#[test]
fn freed_slots_beside_live_ones_are_used_again_once_much_is_idle() {
    let heap = unguarded();
    let kept = make_sparse(&heap, MANY_BLOCKS, 8);
    let before = heap.buckets().0;
    let more: Vec<_> = (0..MANY_BLOCKS / 4).map(|_| alloc(&heap, 100, 1)).collect();
    // Without reused slots there would be a quarter more buckets.
    assert!(
        heap.buckets().0 < before + before / if cfg!(miri) { 5 } else { 16 },
        "{} to {}",
        before,
        heap.buckets().0
    );
    for (at, &block) in more.iter().enumerate() {
        // SAFETY: a block's bytes.
        unsafe { block.write_bytes(at as u8, 100) };
    }
    for (at, &block) in kept.iter().enumerate() {
        // SAFETY: the block's first byte.
        assert_eq!(unsafe { block.read() }, (at * 8) as u8);
    }
    for (at, &block) in more.iter().enumerate() {
        assert_eq!(bytes_of(block), [at as u8; 100]);
        free(&heap, block, 100, 1);
    }
    kept.into_iter().for_each(|block| free(&heap, block, 100, 1));
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}

#[test]
fn a_write_after_free_beside_live_blocks_is_found_before_the_slot_is_used_again() {
    let heap = unguarded();
    let mut kept = make_sparse(&heap, MANY_BLOCKS, 8);
    // The search for buckets begins at the lowest.
    kept.sort_unstable();
    let freed = kept[kept.len() / 16].wrapping_add(112 + 7);
    // SAFETY: the mistake, in memory of the heap's.
    unsafe { freed.write(0x41) };
    let more: Vec<_> = (0..MANY_BLOCKS / 2).map(|_| alloc(&heap, 100, 1)).collect();
    assert_eq!((heap.findings(), kind(&heap)), (1, FindingKind::WriteAfterFree));
    more.into_iter().chain(kept).for_each(|block| free(&heap, block, 100, 1));
    assert_eq!((heap.findings(), heap.deinit().blocks), (1, 0));
}

/// A reopened or swept bucket may have more damaged slots than one pass under the lock records.
#[test]
#[cfg_attr(miri, ignore = "many operations, like those of the test above")]
fn every_write_after_free_beside_live_blocks_is_found() {
    let heap = unguarded();
    let (kept, mut freed) = make_sparse_and_freed(&heap, MANY_BLOCKS, 8);
    freed.sort_unstable();
    let damage = |blocks: &[*mut u8]| {
        for block in blocks {
            // SAFETY: the mistake, in memory of the heap's.
            unsafe { block.wrapping_add(7).write(0x41) };
        }
    };
    let first = freed.len() / 16;
    damage(&freed[first..first + 42]);
    let more: HashSet<_> = (0..MANY_BLOCKS / 2).map(|_| alloc(&heap, 100, 1)).collect();
    assert!(heap.findings() <= 42, "{}", heap.findings());
    heap.sweep();
    assert_eq!((heap.findings(), kind(&heap)), (42, FindingKind::WriteAfterFree));
    freed.retain(|block| !more.contains(block));
    damage(&freed[freed.len() - 42..]);
    heap.sweep();
    assert_eq!(heap.findings(), 84);
    more.into_iter().chain(kept).for_each(|block| free(&heap, block, 100, 1));
    assert_eq!((heap.findings(), heap.deinit().blocks), (84, 0));
}

#[test]
#[cfg_attr(miri, ignore = "one thread is enough there")]
fn threads_use_each_others_sparse_buckets_and_no_slot_twice() {
    let heap = unguarded();
    let rounds = |heap: &DebugHeap, seed: usize| {
        let mut kept = Vec::new();
        for round in 0..3 {
            for block in make_sparse(heap, MANY_BLOCKS / 4, 8 + seed) {
                // SAFETY: a block's bytes.
                unsafe { block.write_bytes((seed + round) as u8, 100) };
                kept.push(Sent(block, seed + round));
            }
        }
        kept
    };
    let kept: Vec<Sent> = std::thread::scope(|scope| {
        let heap = &heap;
        let threads: Vec<_> = (0..3).map(|seed| scope.spawn(move || rounds(heap, seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for Sent(block, byte) in kept {
        assert_eq!(bytes_of(block), [byte as u8; 100]);
        free(&heap, block, 100, 1);
    }
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}

#[cfg(target_os = "linux")]
fn is_inaccessible(address: usize) -> bool {
    // SAFETY: the kernel tries to read a file's name at the address, and reports whether it can.
    let found = unsafe { libc::access(core::ptr::without_provenance(address), libc::F_OK) };
    found != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

#[test]
#[cfg_attr(miri, ignore = "there are no guards, and its memory is small")]
fn a_large_span_serves_every_size_whatever_guards_it() {
    let ends_off = Detect { guard: false, ..Detect::ALL };
    let fill_off = Detect { fill: false, ..Detect::ALL };
    for guard in [Guard::Never, Guard::Sample, Guard::All] {
        for detect in [Detect::ALL, ends_off, fill_off] {
            let heap = quiet(Config { guard, detect, memory: 1, ..Config::DEFAULT });
            // Spans of 5 and 6 units. Some blocks stay filled when freed, others lose their pages.
            for step in 0..400 {
                let size = (200 << 10) + step * 77_777 % (180 << 10);
                let block = alloc(&heap, size, 16);
                // SAFETY: the block has this many bytes.
                unsafe { block.write_bytes(0x41, size) };
                // With guards, the pages around the block are guarded, however the span was.
                #[cfg(target_os = "linux")]
                {
                    let has_ends = detect.guard
                        && crate::os::HAS_GUARDS
                        && crate::os::kernel_page_size() == PAGE;
                    let (page, end) = (block.addr() & !(PAGE - 1), block.addr() + size);
                    for beside in [page - 1, end.next_multiple_of(PAGE)] {
                        assert_eq!(
                            is_inaccessible(beside),
                            has_ends,
                            "{guard:?} {detect:?} {step}"
                        );
                    }
                }
                free(&heap, block, size, 16);
            }
            assert_eq!(heap.findings(), 0, "{guard:?} {detect:?}");
            assert_eq!(heap.deinit().blocks, 0);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "there is no residency")]
#[cfg(target_os = "linux")]
fn a_freed_large_block_has_no_more_memory_than_before_and_its_touched_pages_are_watched() {
    if crate::os::kernel_page_size() != PAGE {
        return;
    }
    let heap = unguarded();
    let size = 50 * PAGE;
    let block = alloc(&heap, size, PAGE);
    for page in [0, 3, 4, 49] {
        // SAFETY: the block has this many bytes.
        unsafe { block.wrapping_add(page * PAGE).write(1) };
    }
    let memory = || {
        let mut resident = [0; 50];
        assert!(crate::os::resident_pages(block.addr(), size, &mut resident));
        resident
    };
    let before = memory();
    free(&heap, block, size, PAGE);
    assert_eq!(memory(), before);
    for page in [0, 3, 4, 49] {
        let at = block.wrapping_add(page * PAGE + 100);
        // SAFETY: the bug under test, of memory that is still mapped.
        unsafe { at.write(1) };
        heap.sweep();
        let finding = heap.last_finding().unwrap();
        assert_eq!(finding.kind, FindingKind::WriteAfterFree);
        assert_eq!(
            (finding.offset, finding.size),
            ((page * PAGE + 100) as i64, size as u64),
            "{page}"
        );
        // SAFETY: the byte is mapped, and was repaired.
        assert_eq!(unsafe { at.read() }, bytes::PATTERN);
    }
    for page in [3, 49] {
        // SAFETY: the bug under test, of memory that is still mapped.
        unsafe { block.wrapping_add(page * PAGE).write(1) };
    }
    heap.sweep();
    let finding = heap.last_finding().unwrap();
    assert_eq!((finding.offset, finding.length), ((3 * PAGE) as i64, (46 * PAGE + 1) as u64));
    assert_eq!(memory(), before, "what lies between has no memory still");
}

#[test]
fn the_peak_knows_a_large_block_that_came_and_went() {
    let heap = quiet(Config::DEFAULT);
    let block = alloc(&heap, 1 << 20, 8);
    free(&heap, block, 1 << 20, 8);
    assert_eq!(heap.peak_bytes(), 1 << 20);
    assert_eq!(heap.deinit().blocks, 0);
}

#[inline(never)]
fn make_one_that_stays(heap: &DebugHeap) -> *mut u8 {
    std::hint::black_box(alloc(heap, 100, 8))
}

#[inline(never)]
fn make_one_that_goes(heap: &DebugHeap) {
    let block = std::hint::black_box(alloc(heap, 100, 8));
    free(heap, block, 100, 8);
}

#[test]
#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
fn blocks_that_stay_do_not_pin_the_buckets_of_those_that_go() {
    let heap = quiet(Config { guard: Guard::Never, ..Config::DEFAULT });
    let mut kept = Vec::new();
    for _ in 0..2000 {
        kept.push(make_one_that_stays(&heap));
        (0..40).for_each(|_| make_one_that_goes(&heap));
    }
    // Without the prediction each of 2000 buckets would hold one block that stays.
    let (buckets, _) = heap.buckets();
    assert!(buckets < 200, "{buckets} buckets");
    kept.into_iter().for_each(|block| free(&heap, block, 100, 8));
    assert_eq!((heap.findings(), heap.deinit().blocks), (0, 0));
}

#[test]
#[cfg_attr(miri, ignore = "its threads hand addresses on, which have no provenance")]
fn whatever_threads_do_all_buckets_but_the_current_ones_are_full() {
    let threads = if cfg!(miri) { 2 } else { 4 };
    let (phases, rounds) = if cfg!(miri) { (2, 30) } else { (20, 2000) };
    let heap = &unguarded();
    let shared = &std::sync::Mutex::new(Vec::<(usize, usize)>::new());
    let still = &std::sync::Barrier::new(threads);
    // Checked at the end, because a thread that fails alone would leave the others waiting.
    let seen = &std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = thread as u64 + 1;
                let mut draw = move |below: usize| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 33) as usize % below
                };
                for _ in 0..phases {
                    for _ in 0..rounds {
                        // Most sizes are of few classes, so that buckets fill up.
                        let size = if draw(8) == 0 { draw(30_000) } else { 40 + draw(4) * 100 };
                        let block = alloc(heap, size, 8).expose_provenance();
                        let mut blocks = shared.lock().unwrap();
                        blocks.push((block, size));
                        let other = if blocks.len() > 1000 || draw(2) == 0 {
                            let at = draw(blocks.len());
                            Some(blocks.swap_remove(at))
                        } else {
                            None
                        };
                        drop(blocks);
                        if let Some((block, size)) = other {
                            free(heap, core::ptr::with_exposed_provenance_mut(block), size, 8);
                        }
                    }
                    if still.wait().is_leader() {
                        seen.lock().unwrap().push(heap.heap().unwrap().open_buckets());
                    }
                    still.wait();
                }
            });
        }
    });
    let seen = seen.lock().unwrap();
    for &(open, with_slots, unknown) in seen.iter() {
        assert!(with_slots <= open);
        assert_eq!(unknown, 0, "of {with_slots} with slots, of {open} open");
    }
    assert!(seen.iter().any(|&(open, with_slots, _)| 0 < with_slots && with_slots < open));
    for (block, size) in shared.lock().unwrap().drain(..) {
        free(heap, core::ptr::with_exposed_provenance_mut(block), size, 8);
    }
    assert_eq!((heap.findings(), heap.live().blocks), (0, 0));
}

#[test]
fn threads_free_each_others_blocks() {
    let heap = quiet(Config::DEFAULT);
    let rounds = if cfg!(miri) { 5 } else { 3000 };
    let owned = heap;
    let heap = &owned;
    std::thread::scope(|scope| {
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
            (0..4).map(|_| std::sync::mpsc::sync_channel::<Sent>(100)).unzip();
        senders.rotate_left(1);
        for (sender, receiver) in senders.drain(..).zip(receivers.drain(..)) {
            scope.spawn(move || {
                for round in 0..rounds {
                    let size = 1 + round * 7 % 600;
                    let block = alloc(heap, size, 8);
                    // SAFETY: ours.
                    unsafe { block.write_bytes(3, size) };
                    let _ = sender.try_send(Sent(block, size)).map_err(|_| {
                        free(heap, block, size, 8);
                    });
                    if let Ok(Sent(other, size)) = receiver.try_recv() {
                        free(heap, other, size, 8);
                    }
                }
                drop(sender);
                while let Ok(Sent(other, size)) = receiver.recv() {
                    free(heap, other, size, 8);
                }
            });
        }
    });
    assert_eq!((heap.findings(), heap.live().blocks), (0, 0));
    owned.deinit();
}

#[test]
fn of_threads_that_free_one_block_at_once_all_but_one_are_reported() {
    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
        let heap = unguarded();
        let block = &Sent(alloc(&heap, 40, 8), 40);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| free(&heap, block.0, block.1, 8));
            }
        });
        assert_eq!((heap.findings(), kind(&heap)), (2, FindingKind::DoubleFree));
        heap.deinit();
    }
}

#[test]
fn each_detection_can_be_switched_off_and_then_sees_nothing() {
    let without = |switch: fn(&mut Detect)| {
        let mut detect = Detect::ALL;
        switch(&mut detect);
        quiet(Config { guard: Guard::Never, detect, ..Config::DEFAULT })
    };
    let heap = without(|d| d.double_free = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 40, 8);
    free(&heap, block, 40, 8);
    assert_eq!(heap.findings(), 0);
    let heap = without(|d| d.canary = false);
    let block = alloc(&heap, 40, 8);
    // SAFETY: the heap's own byte.
    unsafe { block.wrapping_add(40).write(1) };
    free(&heap, block, 40, 8);
    assert_eq!(heap.findings(), 0);
    let heap = without(|d| d.fill = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 40, 8);
    // SAFETY: the heap's own byte.
    unsafe { block.write(1) };
    heap.sweep();
    assert_eq!(heap.findings(), 0);
    let heap = without(|d| d.size = false);
    let block = alloc(&heap, 40, 8);
    free(&heap, block, 24, 8);
    assert_eq!(heap.findings(), 0);
}

#[test]
fn what_is_asked_of_an_address_is_known_of_freed_blocks_too() {
    let heap = unguarded();
    let block = alloc(&heap, 40, 8);
    let live = crate::describe(block.wrapping_add(7));
    assert_eq!((live.kind, live.state), (crate::Kind::Debug, crate::BlockState::InUse));
    assert_eq!((live.block, live.size, live.offset), (block.addr(), 40, 7));
    free(&heap, block, 40, 8);
    assert_eq!(crate::describe(block).state, crate::BlockState::Free);
    heap.deinit();
}

proptest::proptest! {
    #![proptest_config(crate::cases::cases(150))]

    #[test]
    fn what_is_found_is_what_a_model_says(
        first in proptest::prelude::any::<u8>(),
        steps in proptest::collection::vec(proptest::prelude::any::<[u8; model::STEP]>(), 1..if cfg!(miri) { 30 } else { 300 }),
    ) {
        let mut bytes = std::vec![first];
        steps.iter().for_each(|step| bytes.extend_from_slice(step));
        model::run(&bytes);
    }
}

/// The model notices a missing finding.
#[test]
#[cfg_attr(miri, ignore = "many operations")]
fn a_detection_that_is_switched_off_is_missed_by_the_model() {
    let mut random = 1u64;
    let bytes: Vec<u8> = (0..600 * model::STEP)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
            (random >> 56) as u8
        })
        .collect();
    let switches: [fn(&mut Detect); 5] = [
        |_| (),
        |d| d.double_free = false,
        |d| d.fill = false,
        |d| d.canary = false,
        |d| d.size = false,
    ];
    // The first byte selects a debug heap without guards, or a `Checked`.
    for first in [3, 195] {
        for (at, switch) in switches.iter().enumerate() {
            let mut detect = Detect::ALL;
            switch(&mut detect);
            let mut bytes = bytes.clone();
            bytes.insert(0, first);
            let run = || model::run_with(&bytes, Config { detect, ..Config::DEFAULT });
            let missed = std::panic::catch_unwind(run).is_err();
            assert_eq!(missed, at > 0, "{first} {detect:?}");
        }
    }
}
