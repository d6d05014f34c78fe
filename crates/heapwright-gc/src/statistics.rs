//! What a heap reports of itself: pauses, and each pool's numbers.

use super::heap::Heap;
use super::layout::{LARGE, POOLS, slots_in_page};
pub use super::pauses::PAUSE_BUCKETS;
use heapwright_substrate::size_class::UNIT;

/// What there is of one pool.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PoolStatistics {
    /// Bytes of a slot; 0: the layout has no such pool. The last pool is that of large objects.
    pub slot_size: u64,
    /// Pages in use.
    pub pages: u64,
    /// Slots in them.
    pub slots: u64,
    /// Objects that the last collection found live.
    pub live: u64,
    /// Slots that were free when it ended: those that are not live.
    pub free_slots: u64,
    /// Pages with free slots that no mutator has.
    pub available_pages: u64,
    /// Pages that mutators took since the last collection.
    pub taken_pages: u64,
    /// Pages it was granted beyond the goal, ever.
    pub grown_pages: u64,
    /// Pages it borrowed while its sweep was under way, ever.
    pub borrowed_pages: u64,
    /// What was decided when its last sweep ended: a [`Decision`](super::Decision).
    pub decision: u32,
    /// Not used.
    pub spare: u32,
}

/// What there is of a heap. Times are in nanoseconds, sizes in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    /// Collections whose marking has ended.
    pub cycles: u64,
    /// Times the world stood still.
    pub pauses: u64,
    /// Bytes that the last collection found live, external ones included.
    pub live_bytes: u64,
    /// Bytes that the runtime has in malloc and reported.
    pub external_bytes: u64,
    /// Bytes that may be live or garbage when the next collection ends.
    pub goal_bytes: u64,
    /// Bytes of pages in use, without large objects.
    pub in_use_bytes: u64,
    /// Bytes of pages that are wholly free.
    pub empty_bytes: u64,
    /// Bytes of large objects, in whole pages of the system.
    pub large_bytes: u64,
    /// The most bytes the heap ever had, external ones included.
    pub peak_bytes: u64,
    /// Bytes allocated so far, counted when a mutator takes a page.
    pub allocated_bytes: u64,
    /// Nanoseconds that the world stood still, by the clock.
    pub pause_ns: u64,
    /// Nanoseconds spent sweeping, by the clock, of all threads: in steps, and where mutators take pages.
    pub sweep_ns: u64,
    /// The longest pause, in nanoseconds of the collecting thread's CPU time. What a user waits for is
    /// `pause_wall_max_ns`.
    pub pause_max_ns: u64,
    /// Pauses by their CPU time: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
    pub pause_histogram: [u64; PAUSE_BUCKETS],
    /// 0: idle, 1: marking, 2: sweeping, 3: moving.
    pub phase: u32,
    /// Pools of the layout, without that of large objects.
    pub pools: u32,
    /// Mutators attached.
    pub mutators: u32,
    /// Finalizers that wait to be run.
    pub finalizers_pending: u32,
    /// Handles in use.
    pub handles: u64,
    /// The pools: first those of the layout, at the end that of large objects.
    pub pool: [PoolStatistics; POOLS],
    /// Collections that were minor ones, of all.
    pub minor_cycles: u64,
    /// Bytes of objects that are old: what a minor collection does not look at.
    pub old_bytes: u64,
    /// Weak references, and ephemerons, that became null.
    pub cleared: u64,
    /// Collections that moved objects.
    pub compactions: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Pages whose objects were moved elsewhere.
    pub evacuated_pages: u64,
    /// Pages that were to be evacuated, and were not: something in them was pinned, or reported by
    /// value, or led to by more slots than a step has time for.
    pub kept_pages: u64,
    /// The longest pause, in nanoseconds by the clock: from the moment that all mutators stood still to the one
    /// that they were let go.
    pub pause_wall_max_ns: u64,
    /// Pauses by the clock: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
    pub pause_wall_histogram: [u64; PAUSE_BUCKETS],
    /// Nanoseconds, by the clock, from the collector's call until all mutators stood still: of all pauses, which do not
    /// contain them. The first mutator waits that long.
    pub safepoint_ns: u64,
    /// The most of them for one pause.
    pub safepoint_max_ns: u64,
    /// Bytes of the collector's own lists: what is still to be marked, old objects that were stored into, weak references and
    /// ephemerons while marking goes on. What is above 256 KiB of them counts against the limit.
    pub lists_bytes: u64,
    /// The most that they ever had.
    pub lists_peak_bytes: u64,
}

impl Heap {
    /// What there is of the heap. Walks the mutators, and takes the heap's lock once.
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
                free_slots: slots.saturating_sub(of.live) as u64,
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
        }
    }
}
