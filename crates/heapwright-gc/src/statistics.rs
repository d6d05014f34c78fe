//! The statistics of a heap: pauses, and each pool's numbers.

use super::abi::GC_POOLS;
pub use super::abi::{GcPoolStatistics as PoolStatistics, GcStatistics as Statistics};
use super::heap::Heap;
use super::layout::{LARGE, POOLS, slots_in_page};
pub use super::pauses::PAUSE_BUCKETS;
use heapwright_substrate::size_class::UNIT;

const _: () = assert!(POOLS == GC_POOLS);

impl Heap {
    /// Returns the statistics. Walks the mutators, and takes the lock of the page lists once.
    pub(super) fn statistics(&self) -> Statistics {
        let mut pool = [PoolStatistics::default(); POOLS];
        let lists = self.space.lists.lock();
        for (number, (to, of)) in pool.iter_mut().zip(&lists.pool).enumerate() {
            let in_page = if number == LARGE { 1 } else { slots_in_page(of.slot.max(1)) };
            let slots = of.pages * in_page;
            *to = PoolStatistics {
                slot_size: of.slot as u64,
                pages: of.pages as u64,
                slots: slots as u64,
                live: of.live as u64,
                free_slots: (slots.cast_signed() - of.live.cast_signed() - of.claimed).max(0)
                    as u64,
                available_pages: of.available as u64,
                taken_pages: of.taken as u64,
                grown_pages: of.grown as u64,
                borrowed_pages: of.borrowed as u64,
                decision: of.decision as u32,
                spare: 0,
            };
        }
        let (in_use, empty, large) = (lists.in_use, lists.empty_bytes(), lists.large);
        let old_bytes = lists.old_bytes as u64;
        drop(lists);
        let (mut mutators, mut handles) = (0, 0usize);
        self.each_mutator(|mutator| {
            mutators += 1;
            handles = handles.wrapping_add(mutator.handles.balance.get());
        });
        handles = handles.wrapping_add(self.trace.handles.balance());
        let free_slots = |of: &PoolStatistics| of.free_slots * of.slot_size;
        let free_bytes = empty as u64 + pool[..LARGE].iter().map(free_slots).sum::<u64>();
        let pauses = &self.pauses;
        let live_bytes = self.space.pacing.live() as u64;
        let [lists_bytes, lists_peak_bytes] = self.trace.marking.chunks.bytes();
        Statistics {
            cycles: self.space.cycle.number() as u64,
            pauses: pauses.count.get() as u64,
            live_bytes,
            external_bytes: self.space.pacing.external() as u64,
            goal_bytes: self.space.pacing.goal() as u64,
            in_use_bytes: (in_use * UNIT) as u64,
            empty_bytes: empty as u64,
            large_bytes: large as u64,
            peak_bytes: self.space.pacing.peak() as u64,
            allocated_bytes: self.space.pacing.allocated_ever() as u64,
            pause_ns: pauses.wall.sum.get() as u64,
            sweep_ns: pauses.swept_ns() as u64,
            pause_max_ns: pauses.cpu.most.get() as u64,
            pause_histogram: pauses.cpu.histogram(),
            phase: self.space.cycle.phase() as u32,
            pools: self.space.sizes().pools() as u32,
            mutators,
            finalizers_pending: self.trace.finalizers.lock().pending() as u32,
            handles: handles as u64,
            pool,
            minor_cycles: self.trace.generations.minors() as u64,
            old_bytes,
            cleared: self.trace.weak.cleared.get() as u64,
            compactions: self.moving.rounds.get() as u64,
            moved_objects: self.moving.objects.get() as u64,
            moved_bytes: self.moving.bytes.get() as u64,
            evacuated_pages: self.moving.evacuated.get() as u64,
            kept_pages: self.moving.stayed.get() as u64,
            pause_wall_max_ns: pauses.wall.most.get() as u64,
            pause_wall_histogram: pauses.wall.histogram(),
            safepoint_ns: pauses.stopping.sum.get() as u64,
            safepoint_max_ns: pauses.stopping.most.get() as u64,
            lists_bytes: lists_bytes as u64,
            lists_peak_bytes: lists_peak_bytes as u64,
            free_bytes,
        }
    }
}
