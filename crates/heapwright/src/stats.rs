//! Statistics: the use of the process's memory, from the heap's own records.
//!
//! ```text
//!   every committed page is in one unit; its entry tells the unit's part
//!
//!   slab        resident = live + rounding + caches + remote + partial
//!   large       resident = live + rounding
//!   free run    resident = lazily freed
//!   metadata, table, records, bitmaps, and
//!   memory reserved for dense slabs              = metadata
//!   the rest of the process's resident size      = not ours
//! ```
//!
//! The kernel tells which pages are resident (`mincore`), so the parts add up to the resident size.
//! For the status memory, [`estimate`], and in a sandbox, residency is *reckoned* from touched and
//! released memory, without a system call. Bytes in caches and remote frees are known as sums, and
//! subtracted from the slabs' resident bytes. Rounding is known if every call is counted
//! (`stats=exit`), from each class's average request.
//!
//! Other threads run meanwhile, so the figures may mix different moments. Nothing is allocated.

use heapwright_record::Stats;
use heapwright_record::status::{CLASSES as TOLD, Class};

use crate::address_map::{Entry, Kind, MAP};
use crate::cache::{CACHES, Use, arrays, central, magazines};
use crate::chunk::{self, Usage, large_block};
use crate::hardened;
use crate::heap;
use crate::options;
use crate::os;
use crate::os::Memory;
use crate::os::SYSTEM;
use crate::registry::exclusive::Member;
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::Slab;
use crate::substrate;
use crate::sync::atomic::Ordering;
use crate::unit_record::Record;

const _: () = assert!(TOLD == CLASSES);

fn resident(at: usize, size: usize) -> u64 {
    const PAGES: usize = 256;
    let page = os::kernel_page_size();
    let mut flags = [0; PAGES];
    let mut bytes = 0;
    let mut from = 0;
    while from < size {
        let length = (size - from).min(PAGES * page);
        if os::resident_pages(at.wrapping_add(from), length, &mut flags) {
            let pages = flags[..length.div_ceil(page)].iter().filter(|&&flag| flag & 1 != 0);
            bytes += (pages.count() * page) as u64;
        }
        from += length;
    }
    bytes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Residency {
    Asked,
    /// Memory that was handed out counts as touched.
    Reckoned,
}

impl Residency {
    /// Returns the resident bytes of `length` bytes of `kind` that begin at `unit`.
    fn of(self, kind: Kind, unit: usize, length: usize) -> u64 {
        match (self, kind) {
            (Self::Asked, _) => resident(MAP.address_of(unit).addr(), length),
            (Self::Reckoned, Kind::Slab(class)) => {
                Slab::at(&MAP, unit, class).reckoned_resident() as u64
            }
            // The chunk knows which free units may have pages.
            (Self::Reckoned, Kind::Free) => 0,
            (Self::Reckoned, _) => length as u64,
        }
    }
}

fn take(pot: &mut u64, want: u64) -> u64 {
    let taken = want.min(*pot);
    *pot -= taken;
    taken
}

#[cfg(feature = "debug")]
fn debug_live() -> (u64, u64) {
    let ((blocks, bytes), guarded) = (crate::debug::live(), crate::debug::guards::live());
    (blocks + guarded.0, bytes + guarded.1)
}

#[cfg(not(feature = "debug"))]
fn debug_live() -> (u64, u64) {
    (0, 0)
}

#[cfg(feature = "debug")]
fn debug_counts(stats: &mut Stats) {
    for (made, freed, bytes) in [crate::debug::counts(), crate::debug::guards::counts()] {
        stats.allocations += made;
        stats.frees += freed;
        stats.requested_bytes += bytes;
    }
}

#[cfg(not(feature = "debug"))]
fn debug_counts(_stats: &mut Stats) {}

/// Returns the blocks and bytes in shared and hardened caches. Adds other figures to `stats`.
fn shared_caches(stats: &mut Stats) -> (u64, u64) {
    let held = [central::waiting(), arrays::holding(), hardened::cached()];
    let mut blocks: usize = held.iter().map(|(blocks, _)| blocks).sum();
    let mut bytes: usize = held.iter().map(|(_, bytes)| bytes).sum();
    for slot in magazines::ALL.all() {
        // SAFETY: only atomics are read, which any thread may do.
        let magazines = unsafe { slot.value() };
        let (its_blocks, its_bytes) = magazines.cached();
        blocks += its_blocks;
        bytes += its_bytes;
        stats.caches_shared += 1;
        stats.caches_touched += u64::from(magazines.was_used());
        stats.caches_largest = stats.caches_largest.max(its_bytes as u64);
        stats.cache_failed_tries += magazines.uses.failed_tries.load(Ordering::Relaxed);
        stats.cache_waits += magazines.uses.waits.load(Ordering::Relaxed);
        stats.rseq_fallbacks += magazines.uses.fallbacks.load(Ordering::Relaxed);
    }
    stats.rseq_commits = arrays::commits();
    stats.rseq_aborts = arrays::aborts();
    stats.caches_bytes = bytes as u64;
    (blocks as u64, bytes as u64)
}

/// Fills `stats` with the present use of the process's memory, in bytes and blocks.
///
/// For reports, not for loops: takes time in proportion to the address space in use. Makes a system
/// call for each unit of 64 KiB (large blocks: 1 MiB). Returns false, and fills nothing in, if the
/// heap stays locked: the caller may be a signal handler that interrupted the heap.
///
/// ```
/// let mut stats = heapwright::Stats::zero();
/// let block = heapwright::heap::malloc(1 << 20);
/// assert!(heapwright::stats::snapshot(&mut stats));
/// assert!(stats.large_blocks >= 1);
/// assert_eq!(stats.rss_parts(), stats.rss);
/// # unsafe { heapwright::heap::free(block) };
/// ```
pub fn snapshot(stats: &mut Stats) -> bool {
    let Some(usage) = chunk::usage() else { return false };
    // This waits for shared caches, which a slow path may hold.
    heap::publish();
    // A sandbox may kill the process for the system call.
    let residency = if os::is_filtered() { Residency::Reckoned } else { Residency::Asked };
    measure(stats, &usage, residency, |_, _, _| {});
    stats.pid = u64::from(os::process_id());
    stats.set_name(os::process_name());
    let (rss, peak) = os::resident_bytes();
    let ours = stats.rss_parts();
    stats.rss = rss.max(ours);
    stats.peak_rss = peak.max(stats.rss);
    stats.rss_not_ours = stats.rss - ours;
    true
}

/// Fills `stats` with the present use of the heap's memory, without a system call. Memory that was
/// handed out and not released counts as resident. Figures that only the kernel knows are 0. Other
/// threads' caches count as last published. Takes some 20 ns for each 64 KiB of the heap. Returns
/// false, and fills nothing in, if the heap is locked.
///
/// ```
/// let mut stats = heapwright::Stats::zero();
/// let block = heapwright::heap::malloc(100);
/// assert!(heapwright::stats::estimate(&mut stats));
/// assert!(stats.live_bytes >= 112 && stats.rss == 0);
/// # unsafe { heapwright::heap::free(block) };
/// ```
pub fn estimate(stats: &mut Stats) -> bool {
    let Some(usage) = chunk::usage_now() else { return false };
    heap::publish_own();
    measure(stats, &usage, Residency::Reckoned, |_, _, _| {});
    true
}

/// Fills `stats` like [`estimate`], and `classes`. A tick calls this, also in a sandbox.
pub(crate) fn reckon(stats: &mut Stats, classes: &mut [Class; CLASSES], usage: &Usage) {
    for told in classes.iter_mut() {
        *told = Class::default();
    }
    measure(stats, usage, Residency::Reckoned, |class, used, free| {
        let class = &mut classes[class];
        class.used += used;
        class.free += free;
    });
    for (class, told) in classes.iter_mut().enumerate() {
        told.size = size_class::size(class) as u64;
    }
}

/// Fills `stats`. Calls `slab` for each slab: with its class, the resident bytes of the slots that
/// are out, and the resident bytes of its other slots.
fn measure(
    stats: &mut Stats,
    usage: &Usage,
    residency: Residency,
    mut slab: impl FnMut(usize, u64, u64),
) {
    *stats = Stats::zero();
    stats.elapsed_ns = match substrate::started_at() {
        0 => 0,
        start => os::now_ns() - start,
    };
    stats.detailed = u64::from(options::detailed());
    stats.foreign_frees = heap::passed_on();
    stats.window_bytes = usage.window_bytes as u64;
    stats.committed_bytes = usage.committed_bytes as u64;
    stats.purged_bytes = usage.purged_bytes;
    stats.page_size = SYSTEM.page_size() as u64;
    stats.heaps_live = heap::heaps_live() as u64;
    stats.caches_made = CACHES.made() as u64;

    let mut by_class = [(0, 0); CLASSES];
    heap::totals(stats, &mut by_class);
    let (mut cached, mut remote, mut cached_blocks) = (0, 0, 0);
    for cache in CACHES.all() {
        // A first-class heap has no thread that publishes its cache's sums.
        if cache.is_heap()
            && let Some(_order) = cache.lock.try_lock()
        {
            cache.publish();
        }
        cached += cache.cached_bytes() as u64;
        remote += cache.remote().bytes() as u64;
        cached_blocks += (cache.cached_blocks() + cache.remote().len()) as u64;
        if cache.owned_by() == Use::Thread {
            if cache.ownership().is_orphaned() || cache.is_abandoned.load(Ordering::Relaxed) {
                stats.caches_orphaned += u64::from(cache.has_slabs());
            } else {
                stats.caches_live += 1;
            }
        }
    }

    let (shared_blocks, shared_bytes) = shared_caches(stats);
    cached += shared_bytes;
    cached_blocks += shared_blocks;

    let mut slabs_resident = 0;
    let mut out_by_class = [0u64; CLASSES];
    let (mut large_resident, mut large_asked, mut kept_resident) = (0, 0, 0);
    let mut debug_resident = 0;
    let mut unit = 0;
    while unit < usage.frontier {
        let kind = MAP.kind(unit);
        let mut units = 1;
        if matches!(kind, Kind::LargeHead | Kind::Kept) {
            units = (MAP.record(unit).units.load(Ordering::Relaxed) as usize).max(1);
        }
        if kind == Kind::LargeHead {
            let record = MAP.record(unit);
            stats.large_blocks += 1;
            stats.large_bytes += large_block::usable(record) as u64;
            large_asked += record.requested.load(Ordering::Relaxed) as u64;
        }
        units = units.min(usage.frontier - unit);
        let length = match kind {
            Kind::Foreign | Kind::Guard => 0,
            Kind::LargeHead => large_block::usable(MAP.record(unit)).min(units * UNIT),
            _ => units * UNIT,
        };
        let bytes = residency.of(kind, unit, length);
        match kind {
            Kind::Slab(class) => {
                let at = Slab::at(&MAP, unit, class);
                let out = at.carved().saturating_sub(at.free()) as u64;
                slabs_resident += bytes;
                out_by_class[class] += out;
                let used = (out * size_class::size(class) as u64).min(bytes);
                slab(class, used, bytes - used);
            }
            Kind::LargeHead | Kind::LargeRest(_) => large_resident += bytes,
            Kind::Free => stats.rss_lazy += bytes,
            Kind::Kept => kept_resident += bytes,
            Kind::Metadata => stats.rss_metadata += bytes,
            Kind::PoolHead
            | Kind::PoolRest(_)
            | Kind::Arena
            | Kind::Collected(_)
            | Kind::CollectedRest(_) => stats.rss_pools += bytes,
            // The debug heap's live and remembered blocks together.
            Kind::Debug | Kind::DebugRest(_) => debug_resident += bytes,
            Kind::Foreign | Kind::Guard => {}
        }
        unit += units;
    }
    for (at, size) in usage.side_ranges {
        if residency == Residency::Asked && size > 0 {
            stats.rss_metadata += resident(at.addr(), size);
        }
    }
    if residency == Residency::Reckoned {
        stats.rss_lazy = usage.dirty_bytes as u64;
        stats.rss_metadata += (usage.frontier * (size_of::<Entry>() + size_of::<Record>())) as u64;
    }

    // Slots that slabs handed out are in caches or remote frees, or belong to the program.
    let mut out_bytes = 0;
    let mut out_blocks = 0;
    let mut asked = 0;
    for class in 0..CLASSES {
        let bytes = out_by_class[class] * size_class::size(class) as u64;
        out_bytes += bytes;
        out_blocks += out_by_class[class];
        let (count, requested) = by_class[class];
        let part =
            (u128::from(out_by_class[class]) * u128::from(requested)).checked_div(count.into());
        asked += part.map_or(bytes, |part| u64::try_from(part).unwrap_or(bytes));
    }
    let held = out_bytes.saturating_sub(cached + remote);
    stats.live_bytes = held + stats.large_bytes;
    stats.live_blocks = out_blocks.saturating_sub(cached_blocks) + stats.large_blocks;

    stats.rss_live = take(&mut large_resident, large_asked);
    stats.rss_rounding = large_resident;
    let share = |bytes: u64| {
        let part = (u128::from(bytes) * u128::from(asked)).checked_div(out_bytes.into());
        u64::try_from(part.unwrap_or(0)).unwrap_or(bytes)
    };
    let live = take(&mut slabs_resident, held);
    let asked_live = share(live).min(live);
    stats.rss_live += asked_live;
    stats.rss_rounding += live - asked_live;
    let (debug_blocks, debug_bytes) = debug_live();
    stats.live_blocks += debug_blocks;
    stats.live_bytes += debug_bytes;
    debug_counts(stats);
    stats.rss_live += take(&mut debug_resident, debug_bytes);
    // Slack, freed blocks in open buckets, and the history.
    stats.rss_rounding += debug_resident;
    stats.rss_caches = kept_resident + take(&mut slabs_resident, cached);
    stats.rss_remote = take(&mut slabs_resident, remote);
    stats.rss_partial = slabs_resident;
    if stats.detailed == 0 {
        stats.peak_live_bytes = 0;
    }
}
