//! Counts of every call, if the options ask for statistics (`stats=exit`).
//!
//! Threads' fast words then lead to a front that counts every call (`heap::modes`). Each cache has
//! its own counts. All threads share only the words for live bytes and their peak.

use super::{CACHES, Counters, magazines};
use crate::options;
use crate::size_class::{self, SLAB_MAX};
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use heapwright_record::Stats;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

fn add(counter: &AtomicU64, n: u64) {
    // Only the cache's own thread, or the holder of its lock, writes.
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

pub(crate) fn allocation(counters: &Counters, size: usize, usable: usize) {
    add(&counters.allocations, 1);
    add(&counters.requested, size as u64);
    add(&counters.sizes[Stats::size_bucket(size)], 1);
    // (A hardened block counts for the class of its requested size.)
    if (1..=SLAB_MAX).contains(&usable) {
        let (count, requested) = &counters.by_class[size_class::of(usable)];
        add(count, 1);
        add(requested, size as u64);
    }
    live(usable as i64);
}

pub(crate) fn free(counters: &Counters, usable: usize) {
    add(&counters.frees, 1);
    live(-(usable as i64));
}

/// Notes that the usable size of a large block has changed.
pub(crate) fn resized(change: i64) {
    if options::detailed() {
        live(change);
    }
}

fn live(change: i64) {
    let now = LIVE.fetch_add(change, Ordering::Relaxed) + change;
    if change > 0 && now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

/// Adds up the counts of all caches. `by_class` gets each class's allocations and requested bytes.
pub(crate) fn totals(stats: &mut Stats, by_class: &mut [(u64, u64); size_class::CLASSES]) {
    let own = CACHES.all().map(|cache| &cache.counters);
    let shared = magazines::ALL.all().map(|slot| {
        // SAFETY: counters are atomics, which any thread may read.
        unsafe { &slot.value().counters }
    });
    for counters in own.chain(shared) {
        stats.allocations += counters.allocations.load(Ordering::Relaxed);
        stats.frees += counters.frees.load(Ordering::Relaxed);
        stats.requested_bytes += counters.requested.load(Ordering::Relaxed);
        for (total, count) in stats.sizes.iter_mut().zip(&counters.sizes) {
            *total += count.load(Ordering::Relaxed);
        }
        for (total, (count, requested)) in by_class.iter_mut().zip(&counters.by_class) {
            total.0 += count.load(Ordering::Relaxed);
            total.1 += requested.load(Ordering::Relaxed);
        }
    }
    stats.peak_live_bytes = PEAK.load(Ordering::Relaxed).max(0) as u64;
}
