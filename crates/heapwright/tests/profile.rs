//! The heap profile: its estimates against the truth, for each way to make and free a block.
//!
//! All cases are one test, because a process has one profile.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::profiled::Written;
use heapwright::heap::{self, Heap};
use heapwright::profile;
use heapwright_record::debug::{Sampled, SampledMore};

/// The period is small, so that there are many samples.
const PERIOD: usize = 4 << 10;

fn allocate(count: usize, size: usize) -> Vec<usize> {
    (0..count).map(|_| heap::malloc(size) as usize).collect()
}

fn free(blocks: Vec<usize>) {
    for block in blocks {
        // SAFETY: the block is from `allocate`, and is freed once.
        unsafe { heap::free(block as *mut u8) };
    }
}

/// Allocates equal numbers of bytes from three places, partly from the free list and partly from
/// fresh slots. Each place must get its share of the samples.
fn each_call_has_its_share() {
    const TURNS: usize = 400_000;
    let mut stay = Vec::with_capacity(TURNS);
    let before = Written::now();
    for _ in 0..TURNS {
        let first = heap::malloc(100);
        stay.push(heap::malloc(100) as usize);
        let third = heap::malloc(100);
        // SAFETY: the block is ours, and is freed once.
        unsafe { heap::free(first) };
        // SAFETY: the block is ours, and is freed only here.
        unsafe { heap::free(third) };
    }
    let known = |stack| before.sites.iter().any(|site| site.stack == stack);
    let now = Written::now();
    let calls: Vec<_> = now.sites.iter().filter(|site| !known(site.stack)).collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in calls {
        let off = call.allocated_bytes as f64 - (TURNS * 100) as f64;
        assert!(off.abs() <= 6.0 * call.allocated_error as f64, "{off} too many: {call:?}");
    }
    free(stay);
}

#[test]
fn estimates_are_right_whichever_way_blocks_come_and_go() {
    // The profile does not see earlier blocks, and their frees are no frees of samples.
    let before = allocate(1000, 100);
    assert!(profile::begin(PERIOD));
    assert!(profile::is_on());
    free(before);

    // Blocks of many sizes stay.
    let mut live = 0;
    let mut kept = Vec::new();
    for (count, size) in
        [(40_000, 24), (20_000, 100), (3_000, 1000), (500, 9_000), (200, 40_000), (4, 3 << 20)]
    {
        kept.extend(allocate(count, size));
        live += count * size;
    }
    let read = Written::now();
    read.is_about(live);
    assert_eq!(read.profile.period, PERIOD as u64);

    // The profile sees each `malloc` and `free`, although the blocks never leave a list. They count
    // as allocated and as temporary, and not as live.
    let before = read.sum(|site| site.allocated_bytes);
    for _ in 0..400_000 {
        free(allocate(1, 64));
    }
    let read = Written::now();
    read.is_about(live);
    let pairs = (read.sum(|site| site.allocated_bytes) - before) as f64;
    assert!((pairs / (400_000.0 * 64.0) - 1.0).abs() < 0.1, "{pairs}");
    assert!(read.sum(|site| site.temporary_bytes) as f64 > 0.8 * pairs);

    each_call_has_its_share();

    // Another thread frees blocks, and threads that end make blocks.
    let (mine, theirs) = kept.split_at(kept.len() / 2);
    let (mine, theirs) = (mine.to_vec(), theirs.to_vec());
    let others = std::thread::scope(|scope| {
        scope.spawn(|| free(mine)).join().unwrap();
        let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| allocate(5_000, 200))).collect();
        makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect::<Vec<_>>()
    });
    let live = theirs.len();
    free(theirs);
    assert!(live > 0);
    Written::now().is_about(20_000 * 200);
    free(others);
    Written::now().is_about(0);

    let mut blocks = Vec::new();
    for _ in 0..4_000 {
        let zeroed = heap::calloc(500);
        // SAFETY: the block has 500 bytes.
        assert!(unsafe { std::slice::from_raw_parts(zeroed, 500) }.iter().all(|&byte| byte == 0));
        blocks.push(zeroed as usize);
        let aligned = heap::malloc_aligned(300, 256);
        assert_eq!(aligned as usize % 256, 0);
        blocks.push(aligned as usize);
        let mut grown = heap::malloc(40);
        for size in [45, 200, 150, 1200] {
            // SAFETY: the block is ours.
            grown = unsafe { heap::realloc(grown, size) };
        }
        blocks.push(grown as usize);
    }
    Written::now().is_about(4_000 * (500 + 300 + 1200));
    free(blocks);
    let mut large = heap::malloc(100_000);
    for units in 2..400 {
        // SAFETY: the block is ours, and the new one replaces it.
        large = unsafe { heap::realloc(large, units * 100_000) };
        // SAFETY: the block has the requested size.
        unsafe { large.wrapping_add(units * 100_000 - 1).write(7) };
    }
    Written::now().is_about(399 * 100_000);
    free(vec![large as usize]);

    // With a longer period, most blocks are no samples at first. They grow, and count by their
    // growth.
    assert!(profile::begin(4 << 20));
    let mut grown: Vec<usize> = allocate(60, 40_000);
    for block in &mut grown {
        for size in [100_000, 400_000, 900_000] {
            // SAFETY: the block is ours, and the new one replaces it.
            *block = unsafe { heap::realloc(*block as *mut u8, size) } as usize;
        }
    }
    let read = Written::now();
    read.is_about(60 * 900_000);
    let allocated = read.sum(|site| site.allocated_bytes) + read.sites.len() as u64;
    assert!(read.checked.bytes > 0 && allocated >= read.checked.bytes);
    free(grown);
    assert!(profile::begin(PERIOD));

    let first = Heap::create();
    // SAFETY: the heap exists.
    let blocks: Vec<_> =
        (0..20_000).map(|_| unsafe { Heap::alloc(first, 300, 16, false) }).collect();
    Written::now().is_about(20_000 * 300);
    for &block in &blocks[..10_000] {
        // SAFETY: the block is the heap's, and is freed once.
        unsafe { Heap::free(first, block) };
    }
    Written::now().is_about(10_000 * 300);
    // SAFETY: no block of the heap is used any more.
    unsafe { Heap::destroy(first) };
    let read = Written::now();
    read.is_about(0);
    assert!(read.profile.peak_bytes > 9 << 19, "{}", read.profile.peak_bytes);
    assert_eq!(read.profile.lost, 0);

    growth_and_points_are_right();

    // From now on there are no new samples, but the profile sees the frees of live samples.
    let blocks = allocate(10_000, 100);
    profile::end();
    let more = allocate(10_000, 100);
    let read = Written::now();
    let off = (read.checked.bytes as f64 / 1e6 - 1.0).abs();
    // The thread stops sampling at its next slow operation.
    assert!(off < 0.3, "{}", read.checked.bytes);
    free(blocks);
    free(more);
    Written::now().is_about(0);
}

/// Blocks that lived for nearly the whole time are no growth. Later blocks count by their bytes.
fn growth_and_points_are_right() {
    assert!(profile::begin(PERIOD));
    let began = std::time::Instant::now();
    let (stays, goes) = (allocate(20_000, 100), allocate(20_000, 50));
    // The profile counts growth from a moment after the first quarter of the time.
    std::thread::sleep(3 * began.elapsed() + std::time::Duration::from_millis(300));
    let flat_ns = began.elapsed().as_nanos() as u64;
    let comes = allocate(30_000, 80);
    free(goes);
    let read = Written::now();
    read.is_about(20_000 * 100 + 30_000 * 80);

    let earlier: u64 = read.more.iter().map(|more| more.earlier_bytes).sum();
    let grown = read.sum(|site| site.live_bytes) as f64 - earlier as f64;
    let error = read.more.iter().map(|more| (more.growth_error as f64).powi(2)).sum::<f64>().sqrt();
    let truth = 30_000.0 * 80.0 - 20_000.0 * 50.0;
    assert!((grown - truth).abs() <= 6.0 * error, "{grown} for {truth}, error {error}");
    assert!(error > 0.0 && error < truth / 4.0, "{error}");
    // Samples that live at both moments have no uncertainty, except for rounding.
    let is_as_before = |(site, more): &(&Sampled, &SampledMore)| {
        site.live_bytes > 1_500_000 && more.earlier_bytes == site.live_bytes
    };
    let pairs = read.sites.iter().zip(&read.more);
    let unchanged: Vec<_> = pairs.filter(is_as_before).map(|(_, more)| more.growth_error).collect();
    assert!(matches!(unchanged[..], [0..100]), "{unchanged:?}");

    let points = &read.points;
    assert!(points.len() > 3 && points.is_sorted_by_key(|point| point.ns));
    let at_rest = points.iter().rfind(|point| point.ns < flat_ns).unwrap();
    assert!(at_rest.live_bytes.abs_diff(earlier) <= read.sites.len() as u64, "{at_rest:?}");
    let last = points.last().unwrap();
    assert!(last.live_bytes.abs_diff(read.checked.bytes) <= 1);
    assert!(last.resident_bytes > 4_400_000, "{last:?}");
    free(stays);
    free(comes);
}
