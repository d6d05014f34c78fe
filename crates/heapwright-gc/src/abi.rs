//! Structs and numbers that C and Rust share. Only this file states them.
//!
//! `heapwright-malloc` compiles this file too, and its `include/heapwright.h` is generated from it.
//! So the documentation serves both languages. A struct may only grow at its end, because compiled
//! programs know the old layout. `tests/programs/layouts.c` there asserts each offset.

/// An object may hold references. Its memory is zeroed, unless the heap is uncleared.
pub const GC_TRACED: u32 = 0;
/// An object holds no references. Its memory is uninitialised.
pub const GC_LEAF: u32 = 1;
/// Flag for either kind: the runtime's free is called when the object has died.
pub const GC_FREED: u32 = 2;
/// Flag for any kind: a bit of the runtime's own, which trace_kind of hw_gc_runtime receives.
/// Objects with it lie in pages of their own.
pub const GC_USER: u32 = 4;

/// Pools that a heap can have, with the pool of large objects.
pub const GC_POOLS: usize = 64;
/// Buckets of the histogram of pauses.
pub const GC_PAUSE_BUCKETS: usize = 64;

/// Verify after each collection that all references lead to objects.
pub const GC_VERIFY_HEAP: u32 = 1;
/// Verify when marking ends that every store was reported.
pub const GC_VERIFY_BARRIERS: u32 = 2;
/// Collect at every allocation. With incremental marking and without HW_GC_VERIFY_HEAP, only make a
/// small step.
pub const GC_STRESS: u32 = 4;

/// The number of priorities of finalizers. 0 is the highest.
pub const GC_PRIORITIES: usize = 4;

/// The statistics of a pool.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GcPoolStatistics {
    /// Bytes of a slot; 0 if there is no such pool. The last pool is that of large objects.
    pub slot_size: u64,
    /// Pages in use.
    pub pages: u64,
    /// Slots in these pages.
    pub slots: u64,
    /// Objects that the last collection found live.
    pub live: u64,
    /// Free slots, without those of pages that mutators took since the last collection.
    pub free_slots: u64,
    /// Pages with free slots that no mutator has.
    pub available_pages: u64,
    /// Pages that mutators took since the last collection.
    pub taken_pages: u64,
    /// Pages that were granted beyond the goal, ever.
    pub grown_pages: u64,
    /// Pages that were borrowed while the pool's sweep was under way, ever.
    pub borrowed_pages: u64,
    /// The decision when the pool's last sweep ended: 0 none yet, 1 enough is free, 2 stable, 3 the
    /// pool grows, 4 the pool gave pages back.
    pub decision: u32,
    /// Not used.
    pub spare: u32,
}

/// The statistics of a heap. Times are in nanoseconds. Later versions add fields at the end: give
/// hw_gc_stats the size of the struct you were compiled with.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GcStatistics {
    /// Collections whose marking has ended.
    pub cycles: u64,
    /// Times the world was stopped.
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
    /// Bytes of the pages of large objects.
    pub large_bytes: u64,
    /// The most bytes the heap ever had, external ones included.
    pub peak_bytes: u64,
    /// Bytes allocated so far, counted when a mutator takes a page.
    pub allocated_bytes: u64,
    /// Nanoseconds that the world was stopped, by the clock.
    pub pause_ns: u64,
    /// Nanoseconds that all threads spent sweeping, by the clock: in steps, and when mutators take
    /// pages.
    pub sweep_ns: u64,
    /// The longest pause, in nanoseconds of the collecting thread's CPU time. A user waits for
    /// pause_wall_max_ns.
    pub pause_max_ns: u64,
    /// Pauses by their CPU time: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
    pub pause_histogram: [u64; GC_PAUSE_BUCKETS],
    /// 0: idle, 1: marking, 2: sweeping, 3: moving.
    pub phase: u32,
    /// Pools, without that of large objects.
    pub pools: u32,
    /// Mutators attached.
    pub mutators: u32,
    /// Finalizers that wait to be run.
    pub finalizers_pending: u32,
    /// Handles in use.
    pub handles: u64,
    /// The pools, smallest first; at the end that of large objects.
    pub pool: [GcPoolStatistics; GC_POOLS],
    /// Minor collections.
    pub minor_cycles: u64,
    /// Bytes of old objects, which a minor collection does not trace.
    pub old_bytes: u64,
    /// Weak references, and ephemerons, that became NULL.
    pub cleared: u64,
    /// Collections that moved objects.
    pub compactions: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Bytes of the objects that were moved.
    pub moved_bytes: u64,
    /// Pages whose objects were moved elsewhere.
    pub evacuated_pages: u64,
    /// Evacuation candidates that were not evacuated. An object in such a page was pinned or reported by value, or more slots led to the page than a step can update.
    pub kept_pages: u64,
    /// The longest pause, in nanoseconds by the clock: from the moment that all mutators are
    /// stopped until they go on.
    pub pause_wall_max_ns: u64,
    /// Pauses by the clock: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
    pub pause_wall_histogram: [u64; GC_PAUSE_BUCKETS],
    /// The sum of all waits, in nanoseconds by the clock. A wait lasts from the collector's call
    /// until all mutators are stopped. A pause does not include its wait. The first mutator to stop
    /// waits that long.
    pub safepoint_ns: u64,
    /// The longest of these waits, in nanoseconds.
    pub safepoint_max_ns: u64,
    /// Bytes of the collector's own lists: items still to be marked, old objects that were stored
    /// into, and, during marking, weak references and ephemerons. Bytes above 256 KiB count against
    /// the limit most.
    pub lists_bytes: u64,
    /// The most bytes that these lists ever had.
    pub lists_peak_bytes: u64,
    /// Bytes that are free and may be in memory: those of empty_bytes, and free slots of pages with
    /// objects.
    pub free_bytes: u64,
}

/// The outcome of a collection. Sizes in bytes, times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GcOutcome {
    /// Bytes of this struct, as the library knows it.
    pub size: usize,
    /// Live bytes: of slots, and of the runtime's blocks in malloc that it has reported for them.
    pub live_bytes: usize,
    /// Bytes allocated since the collection before.
    pub allocated_bytes: usize,
    /// Bytes marked.
    pub marked_bytes: usize,
    /// Bytes that may be live or garbage when the next collection ends, by the heap's own rule.
    pub goal_bytes: usize,
    /// Time of the collector: CPU time of the marking thread, and sweeping since the collection
    /// before.
    pub collector_ns: u64,
    /// Time of the program since the collection before, by the clock.
    pub mutator_ns: u64,
    /// Collections so far, this one included.
    pub cycles: u64,
    /// Whether the collection was a minor one.
    pub minor: bool,
}

/// A span begins.
pub const GC_EVENT_BEGINS: u32 = 0;
/// A span ends.
pub const GC_EVENT_ENDS: u32 = 1;
/// Flag of an event: the collection is a minor one.
pub const GC_EVENT_MINOR: u32 = 1;
/// Flag of an event: the world is stopped during the call.
pub const GC_EVENT_STOPPED: u32 = 2;
/// Flag of an event: the collection moves objects.
pub const GC_EVENT_COMPACTS: u32 = 4;

/// A span, which begins and ends: see hw_gc_event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum GcSpan {
    /// A collection. Its first event has the bytes allocated since the last collection, its last event the live bytes. The world is stopped only for the first event.
    Collection = 1,
    /// All marking of a collection. During it the runtime reports what objects and roots lead to.
    /// When it ends, all reachable objects were reported, so a runtime may sweep its own tables.
    /// Ends with the bytes marked.
    Trace = 2,
    /// A pause. Begins when all mutators are stopped, with the nanoseconds until then; ends when
    /// they go on, with the nanoseconds that it lasted.
    Pause = 3,
    /// A step of marking.
    Mark = 4,
    /// Roots are reported: handles, the runtime's, stacks.
    Roots = 5,
    /// Values of ephemerons are marked, weak references to dead objects are cleared, finalizers
    /// become due.
    Weak = 6,
    /// A step of moving objects. Ends with the bytes moved.
    Move = 7,
    /// Sweeping: by steps, and by mutators that take pages.
    Sweep = 8,
    /// The life of a large object, of at least large_bytes of hw_gc_runtime: from its allocation to the sweep that finds it dead. Both events have its address and bytes. If the object moves, one span ends, and another begins at the new address.
    Large = 9,
}

/// The state of a mutator's thread, for its heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum GcThreadState {
    /// It has left, or has not entered: it touches no object.
    Away = 0,
    /// It may touch objects, so collectors wait for it.
    AtWork = 1,
    /// It waits until the world goes on.
    Stopped = 2,
}
