//! The constants and structs of the collected heaps' part of `include/heapwright.h`.
//!
//! Written out here as those of `hw_types` are: a promise to programs compiled long ago.
//! `const` assertions tie each to the library's own. Of [`GcMutator`] and [`GcTracer`] only
//! the heads are shown, which the inline functions of `heapwright_gc.h` use.

use core::ffi::{c_char, c_void};

use crate::hw_gc_event_types::GcEvent;
use crate::mirror::{field, mirror, same};
use heapwright::gc::raw::{Options, Runtime, shown};
use heapwright::gc::{FREED, LEAF, Outcome, PoolStatistics, Statistics, TRACED, USER};

/// A collected heap. Make one with hw_gc_create.
pub struct GcHeap {
    _opaque: [u8; 0],
}

/// An object may hold references. It arrives zeroed, unless the heap is uncleared.
pub const GC_TRACED: u32 = 0;
/// An object holds no references. It arrives as its memory was left.
pub const GC_LEAF: u32 = 1;
/// To be added to either: the runtime's free is called when the object has died.
pub const GC_FREED: u32 = 2;
/// To be added to any: a bit of the runtime's own, which trace_kind of hw_gc_runtime is handed. Objects with it lie in
/// pages of their own.
pub const GC_USER: u32 = 4;
/// Regions of a mutator: pools times kinds.
pub const GC_REGIONS: usize = 512;
/// Sizes that have a place: multiples of 8 up to 32 KiB.
pub const GC_PLACES: usize = 4097;
/// Pools a heap can have, and that of large objects.
pub const GC_POOLS: usize = 64;
/// Buckets of the histogram of pauses.
pub const GC_PAUSE_BUCKETS: usize = 64;

/// Verify after each collection that all references lead to objects.
pub const GC_VERIFY_HEAP: u32 = 1;
/// Verify when marking ends that every store was reported.
pub const GC_VERIFY_BARRIERS: u32 = 2;
/// Collect at every allocation; where marking goes in steps and HW_GC_VERIFY_HEAP is not
/// asked for, make a small step.
pub const GC_STRESS: u32 = 4;

/// Of a mutator's barrier: objects are being moved.
pub const GC_MOVING: u32 = 4;

const _: () = assert!(shown::MOVING == GC_MOVING);
const _: () =
    assert!(GC_TRACED == TRACED && GC_LEAF == LEAF && GC_FREED == FREED && GC_USER == USER);

/// Stretches of free slots: allocating moves next. For heapwright_gc.h.
#[repr(C)]
pub struct GcRegion {
    /// The next slot.
    pub next: *mut c_char,
    /// The end of the last one of this stretch.
    pub end: *mut c_char,
    /// The next stretch. Its first two words are its end, and the one after it; NULL: there is none.
    pub hole: *mut *mut c_void,
    /// Bytes of a slot.
    pub slot: u32,
    /// heapwright's own.
    pub page: u32,
}

/// A thread's way into a heap, from hw_gc_attach. What is not declared here is
/// heapwright's own.
#[repr(C)]
pub struct GcMutator {
    /// Not 0: a call of hw_gc_safepoint is asked for.
    pub poll: u32,
    /// Not 0: stores of references must be reported; HW_GC_MOVING: all of them.
    pub barrier: u32,
    /// The heap.
    pub heap: *mut GcHeap,
    /// A region for each pool and kind: pool * 8 + kind.
    pub regions: [GcRegion; GC_REGIONS],
    /// Where the region is for an object that is traced, by (size + 7) / 8: bytes from the
    /// first. For up to 32 KiB.
    pub places: [u16; GC_PLACES],
    /// Where the mark of an object is: a bit for 16 bytes of its address.
    pub marks: *const u8,
    /// The runtime's word: see hw_gc_data.
    pub data: *mut c_void,
    /// The entry of each 64 KiB of the heaps' addresses, by address >> 16. Of other addresses there is none to look at.
    pub units: *const u32,
    /// The entry of a page of the first region; of the next one it is one more, and so on.
    pub first_list: u32,
}

const _: () = {
    assert!(shown::REGIONS == GC_REGIONS);
    assert!(same(shown::MUTATOR[0], field!(GcMutator, poll)));
    assert!(same(shown::MUTATOR[1], field!(GcMutator, barrier)));
    assert!(same(shown::MUTATOR[2], field!(GcMutator, heap)));
    assert!(same(shown::MUTATOR[3], field!(GcMutator, regions)));
    assert!(same(shown::MUTATOR[4], field!(GcMutator, places)));
    assert!(same(shown::MUTATOR[5], field!(GcMutator, marks)));
    assert!(same(shown::MUTATOR[6], field!(GcMutator, data)));
    assert!(same(shown::MUTATOR[7], field!(GcMutator, units)));
    assert!(same(shown::MUTATOR[8], field!(GcMutator, first_list)));
    assert!(same(shown::REGION[0], field!(GcRegion, next)));
    assert!(same(shown::REGION[1], field!(GcRegion, end)));
    assert!(same(shown::REGION[2], field!(GcRegion, hole)));
    assert!(same(shown::REGION[3], field!(GcRegion, slot)));
    assert!(same(shown::REGION[4], field!(GcRegion, page)));
    assert!(shown::REGION_SIZE == size_of::<GcRegion>());
};

/// What references are reported to, in a callback and during its call. What is not declared
/// here is heapwright's own.
#[repr(C)]
pub struct GcTracer {
    /// Where the next reference goes.
    pub next: *mut *mut c_void,
    /// Where there is no more room.
    pub end: *mut *mut c_void,
    /// Not 0: objects are to be moved, and slots are reported to hw_gc_mark_slot_moving.
    pub by_slot: usize,
}

const _: () = {
    assert!(same(shown::TRACER[0], field!(GcTracer, next)));
    assert!(same(shown::TRACER[1], field!(GcTracer, end)));
    assert!(same(shown::TRACER[2], field!(GcTracer, by_slot)));
};

/// What the runtime of a language does for its heap. Zero what is not used, trace alone must
/// be there if objects are traced, or trace_kind. data is handed to each callback. No callback may allocate,
/// collect, throw or jump out, but for out_of_memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcRuntime {
    /// sizeof(hw_gc_runtime).
    pub size: usize,
    /// Handed to each callback.
    pub data: *mut c_void,
    /// Reports every reference that object holds: hw_gc_mark for each.
    pub trace:
        Option<unsafe extern "C" fn(tracer: *mut GcTracer, object: *mut c_void, data: *mut c_void)>,
    /// Reports the roots that are neither handles nor on a stack that is scanned.
    pub roots: Option<unsafe extern "C" fn(tracer: *mut GcTracer, data: *mut c_void)>,
    /// An object of kind HW_GC_FREED has died; size is that of its slot. It looks at no other
    /// object.
    pub free: Option<unsafe extern "C" fn(object: *mut c_void, size: usize, data: *mut c_void)>,
    /// The name of an object's type, for dumps and verifiers: a string that stays.
    pub type_name:
        Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> *const c_char>,
    /// How many bytes an object that is to be moved is to have where it goes: it goes to the pool
    /// that suits. 0: as many as it has.
    pub wanted: Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> usize>,
    /// An object has moved to a slot of size bytes; where it was, from, is only an address. It may be
    /// changed, but no reference is stored into it.
    pub moved: Option<
        unsafe extern "C" fn(
            object: *mut c_void,
            from: *const c_void,
            size: usize,
            data: *mut c_void,
        ),
    >,
    /// Hears of collections. Called by the thread that collects, sweeps or allocates, which holds no lock of the
    /// heap's. It may look at objects, call hw_gc_stats and hw_gc_attached, malloc, and write files; it allocates nothing in
    /// this heap, stores no references, collects nothing, attaches and detaches nothing, enters and leaves nothing. While the world
    /// stands still (HW_GC_EVENT_STOPPED) it takes no lock that a thread may hold at a safepoint, and is part of
    /// the pause. A collection's events come one after the other, but that the end of a pause is told when the world goes on already.
    pub event: Option<unsafe extern "C" fn(event: *const GcEvent, data: *mut c_void)>,
    /// As trace, which is used where there is one, and is handed the object's kind, too.
    pub trace_kind: Option<
        unsafe extern "C" fn(
            tracer: *mut GcTracer,
            object: *mut c_void,
            kind: u32,
            data: *mut c_void,
        ),
    >,
    /// Marking met a reference that leads to no object of the heap: to static data, to memory of malloc, to another heap. The
    /// runtime may mark what is its own there, and report what that leads to, as trace does. Called as trace is, by any
    /// thread, once for each such reference and not for each target, NULL and what is no multiple of 8 excepted; between
    /// the ends of HW_GC_SPAN_TRACE and only there. A minor collection reports what young objects and roots lead
    /// to.
    pub outside: Option<
        unsafe extern "C" fn(tracer: *mut GcTracer, reference: *mut c_void, data: *mut c_void),
    >,
    /// There is no memory for an object, or none under the limit after collecting. true: try again, for the runtime
    /// has let something go, or raised the limit; false: the allocation gives NULL. Called where the allocation was, so it
    /// may collect, run finalizers, and longjmp out of it; what it allocates in this heap may bring it here again.
    pub out_of_memory: Option<
        unsafe extern "C" fn(
            mutator: *mut GcMutator,
            size: usize,
            kind: u32,
            data: *mut c_void,
        ) -> bool,
    >,
    /// Bytes from which on a large object is an event (HW_GC_SPAN_LARGE). 0: none is.
    pub large_bytes: usize,
    /// Objects have moved, and this one changes each reference that it reports by hw_gc_mark_movable to what hw_gc_moved
    /// says, if that is not NULL. Called while the world stands still, in one pause with the moves, for each object of the heap,
    /// where it is now; also for one that has died and awaits its free, which may lead to what is gone: by such references it looks at nothing. It
    /// allocates nothing in this heap, and looks at other objects only as far as that
    /// bears references that were not changed yet. A heap with this moves all that it moves in one pause, not in steps.
    pub update: Option<unsafe extern "C" fn(object: *mut c_void, data: *mut c_void)>,
    /// The same for the runtime's roots, when all objects have been asked. Both are there, or neither is of use.
    pub update_roots: Option<unsafe extern "C" fn(data: *mut c_void)>,
}

mirror! {
    GcRuntime, Runtime;
    size data trace roots free type_name wanted moved event trace_kind outside out_of_memory large_bytes
    update update_roots
}

/// Which slot sizes a heap has.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum GcLayout {
    /// Steps of 16 bytes to 256, then eight a doubling to 1 KiB, then four to 32 KiB.
    Fine = 0,
    /// 40, 80, 160, 320 and 640 bytes.
    Ruby = 1,
    /// Powers of two from 32 bytes to 32 KiB, and 40.
    Powers = 2,
    /// 40 bytes alone.
    Single = 3,
}

/// How a heap is to be. Zero is a good choice for everything.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcOptions {
    /// sizeof(hw_gc_options).
    pub size: usize,
    /// A hw_gc_layout: the pools' slot sizes.
    pub layout: u32,
    /// The memory target: the heap may be so many percent of what is live: more than 100.
    /// 0: 200.
    pub factor_percent: u32,
    /// HW_GC_VERIFY_HEAP, HW_GC_VERIFY_BARRIERS, HW_GC_STRESS.
    pub verify: u32,
    /// Bytes that each mutator may allocate between two collections in any case. 0: 4 MiB.
    pub least: usize,
    /// Bytes of pages and external memory beyond which no page is taken. 0: no limit.
    pub most: usize,
    /// The longest step on the allocation path of an incremental heap, in nanoseconds.
    /// 0: 500000.
    pub step_ns: u64,
    /// Whether all stores of references are reported (hw_gc_write), so that marking goes in
    /// steps.
    pub incremental: bool,
    /// Whether all stores of references are reported (hw_gc_write), so that most collections need
    /// not look at what has survived two others: minor ones.
    pub generations: bool,
    /// Threads that mark at most, mutators that stand still among them. Where there is much
    /// to mark, threads that only mark are made up to this number, as far as processors are idle;
    /// they end when nothing was to be marked for a second. 0: one a processor, up to 4; 1:
    /// none is made. Never more than there are processors.
    pub markers: u32,
    /// Whether objects are moved to where they lie close together, when a heap has many more
    /// pages than it may have: those that are led to by handles and by slots alone
    /// (hw_gc_mark_slot). hw_gc_compact does it at once.
    pub compact: bool,
    /// Whether objects of a runtime without trace are looked through word for word: each that may be an address within an
    /// object keeps it, and keeps it in place. Without this they hold no references.
    pub conservative: bool,
    /// Whether memory for traced objects is handed out with what dead ones have left in it, as that for HW_GC_LEAF always
    /// is: the runtime writes all that its trace function reads before the next safepoint.
    pub uncleared: bool,
}

mirror! {
    GcOptions, Options;
    size layout factor_percent verify least most step_ns incremental generations markers
    compact conservative uncleared
}

/// What there is of a pool.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcPoolStatistics {
    /// Bytes of a slot; 0: there is no such pool. The last pool is that of large objects.
    pub slot_size: u64,
    /// Pages in use.
    pub pages: u64,
    /// Slots in them.
    pub slots: u64,
    /// Objects that the last collection found live.
    pub live: u64,
    /// Slots that were free when it ended.
    pub free_slots: u64,
    /// Pages with free slots that no mutator has.
    pub available_pages: u64,
    /// Pages that mutators took since the last collection.
    pub taken_pages: u64,
    /// Pages that were granted beyond the goal, ever.
    pub grown_pages: u64,
    /// Pages that were borrowed while the pool's sweep was under way, ever.
    pub borrowed_pages: u64,
    /// What was decided when its last sweep ended: 0 nothing yet, 1 enough is free,
    /// 2 stable, 3 it grows, 4 it gave pages back.
    pub decision: u32,
    /// Not used.
    pub spare: u32,
}

mirror! {
    GcPoolStatistics, PoolStatistics;
    slot_size pages slots live free_slots available_pages taken_pages grown_pages borrowed_pages
    decision spare
}

/// What there is of a heap. Times are in nanoseconds. Later versions add fields at the end:
/// give hw_gc_stats the size of the struct you were compiled with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcStatistics {
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
    /// Bytes of the pages of large objects.
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
    /// Collections that were minor ones, of all.
    pub minor_cycles: u64,
    /// Bytes of objects that are old: what a minor collection does not look at.
    pub old_bytes: u64,
    /// Weak references, and ephemerons, that became NULL.
    pub cleared: u64,
    /// Collections that moved objects.
    pub compactions: u64,
    /// Objects that were moved, and their bytes.
    pub moved_objects: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Pages whose objects were moved elsewhere.
    pub evacuated_pages: u64,
    /// Pages that were to be, and were not: something in them was pinned, reported by value, or led
    /// to by more slots than a step has time for.
    pub kept_pages: u64,
    /// The longest pause, in nanoseconds by the clock: from the moment that all mutators stood still to the one
    /// that they were let go.
    pub pause_wall_max_ns: u64,
    /// Pauses by the clock: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
    pub pause_wall_histogram: [u64; GC_PAUSE_BUCKETS],
    /// Nanoseconds, by the clock, from the collector's call until all mutators stood still: of all pauses, which do not
    /// contain them. The first mutator waits that long.
    pub safepoint_ns: u64,
    /// The most of them for one pause.
    pub safepoint_max_ns: u64,
    /// Bytes of the collector's own lists: what is still to be marked, old objects that were stored into, weak references and
    /// ephemerons while marking goes on. What is above 256 KiB of them counts against most.
    pub lists_bytes: u64,
    /// The most that they ever had.
    pub lists_peak_bytes: u64,
}

mirror! {
    GcStatistics, Statistics;
    cycles pauses live_bytes external_bytes goal_bytes in_use_bytes empty_bytes large_bytes peak_bytes
    allocated_bytes pause_ns sweep_ns pause_max_ns pause_histogram phase pools mutators
    finalizers_pending handles pool minor_cycles old_bytes cleared compactions moved_objects
    moved_bytes evacuated_pages kept_pages pause_wall_max_ns pause_wall_histogram safepoint_ns
    safepoint_max_ns lists_bytes lists_peak_bytes
}

/// What hw_gc_walk calls for each object. Return false to stop the walk.
pub type GcVisitor = Option<
    unsafe extern "C" fn(object: *mut c_void, size: usize, kind: u32, context: *mut c_void) -> bool,
>;

/// What hw_gc_run_finalizers calls.
pub type GcFinalizer = Option<unsafe extern "C" fn(object: *mut c_void, context: *mut c_void)>;

/// What hw_gc_tell_when_due calls.
pub type GcSomeAreDue = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// What looks through a table of the runtime's own: see hw_gc_add_weak_pass.
pub type GcWeakPass = Option<unsafe extern "C" fn(tracer: *mut GcTracer, context: *mut c_void)>;

/// Priorities of finalizers: 0, the highest, up to this less 1.
pub const GC_PRIORITIES: usize = 4;

const _: () = assert!(GC_PRIORITIES == heapwright::gc::PRIORITIES);

/// How a collection went. Sizes in bytes, times in nanoseconds.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcOutcome {
    /// Bytes of this struct, as the library knows it.
    pub size: usize,
    /// What lives: of slots, and what the runtime has in malloc for them as far as is known.
    pub live_bytes: usize,
    /// What was allocated since the collection before.
    pub allocated_bytes: usize,
    /// What was marked.
    pub marked_bytes: usize,
    /// What may be live and garbage when the next one ends, by the heap's own rule.
    pub goal_bytes: usize,
    /// How long the collector worked: CPU time of the marking thread, and sweeping since the collection before.
    pub collector_ns: u64,
    /// How long the program did since the collection before, by the clock.
    pub mutator_ns: u64,
    /// Collections so far, this one included.
    pub cycles: u64,
    /// Whether it was a minor one.
    pub minor: bool,
}

mirror! {
    GcOutcome, Outcome;
    size live_bytes allocated_bytes marked_bytes goal_bytes collector_ns mutator_ns cycles minor
}

/// What hw_gc_set_policy has asked: how many bytes may be live and garbage when the next collection ends.
pub type GcPolicy =
    Option<unsafe extern "C" fn(outcome: *const GcOutcome, context: *mut c_void) -> usize>;
