//! The structs of the collected heaps' part of `include/heapwright.h` that C has otherwise than
//! Rust: callbacks that take pointers, a layout that may be any number, and heads of what is
//! larger.
//!
//! `const` assertions tie each to the library's own. What both have alike is `gc_abi`. Of
//! [`GcMutator`] and [`GcTracer`] only the heads are shown, which the inline functions of
//! `heapwright_gc.h` use.

use core::ffi::{c_char, c_void};

use crate::gc_abi::GcOutcome;
use crate::mirror::{field, mirror, same};
use heapwright::gc::Event;
use heapwright::gc::raw::{Options, Runtime, shown};

/// A collected heap. Make one with hw_gc_create.
pub struct GcHeap {
    _opaque: [u8; 0],
}

/// Regions of a mutator: pools times kinds.
pub const GC_REGIONS: usize = 512;
/// Sizes that have a place: multiples of 8 up to 32 KiB.
pub const GC_PLACES: usize = 4097;
/// Of a mutator's barrier: objects are being moved.
pub const GC_MOVING: u32 = 4;

const _: () = assert!(shown::MOVING == GC_MOVING);
/// Stretches of free slots: allocating moves next. For heapwright_gc.h.
#[repr(C)]
pub struct GcRegion {
    /// The next slot.
    pub next: *mut c_char,
    /// The end of the last one of this stretch.
    pub end: *mut c_char,
    /// The next stretch. Its first two words are its end, and the one after it; NULL: there is
    /// none.
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
    /// The entry of each 64 KiB of the heaps' addresses, by address >> 16. Of other addresses there
    /// is none to look at.
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

/// What the runtime of a language does for its heap. Zero what is not used, trace alone must be
/// there if objects are traced, or trace_kind. data is handed to each callback. No callback may
/// allocate, collect, throw or jump out, but for out_of_memory.
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
    /// An object has moved to a slot of size bytes; where it was, from, is only an address. It may
    /// be changed, but no reference is stored into it.
    pub moved: Option<
        unsafe extern "C" fn(
            object: *mut c_void,
            from: *const c_void,
            size: usize,
            data: *mut c_void,
        ),
    >,
    /// Hears of collections. Called by the thread that collects, sweeps or allocates, which holds
    /// no lock of the heap's. It may look at objects, call hw_gc_stats and hw_gc_attached, malloc,
    /// and write files; it allocates nothing in this heap, stores no references, collects nothing,
    /// attaches and detaches nothing, enters and leaves nothing. While the world stands still
    /// (HW_GC_EVENT_STOPPED) it takes no lock that a thread may hold at a safepoint, and is part of
    /// the pause. A collection's events come one after the other, but that the end of a pause is
    /// told when the world goes on already.
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
    /// Marking met a reference that leads to no object of the heap: to static data, to memory of
    /// malloc, to another heap. The runtime may mark what is its own there, and report what that
    /// leads to, as trace does. Called as trace is, by any thread, once for each such reference and
    /// not for each target, NULL and what is no multiple of 8 excepted; between the ends of
    /// HW_GC_SPAN_TRACE and only there. A minor collection reports what young objects and roots
    /// lead to.
    pub outside: Option<
        unsafe extern "C" fn(tracer: *mut GcTracer, reference: *mut c_void, data: *mut c_void),
    >,
    /// There is no memory for an object, or none under the limit after collecting. true: try again,
    /// for the runtime has let something go, or raised the limit; false: the allocation gives NULL.
    /// Called where the allocation was, so it may collect, run finalizers, and longjmp out of it;
    /// what it allocates in this heap may bring it here again.
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
    /// Objects have moved, and this one changes each reference that it reports by
    /// hw_gc_mark_movable to what hw_gc_moved says, if that is not NULL. Called while the world
    /// stands still, in one pause with the moves, for each object of the heap, where it is now;
    /// also for one that has died and awaits its free, which may lead to what is gone: by such
    /// references it looks at nothing. It allocates nothing in this heap, and looks at other
    /// objects only as far as that bears references that were not changed yet. A heap with this
    /// moves all that it moves in one pause, not in steps.
    pub update: Option<unsafe extern "C" fn(object: *mut c_void, data: *mut c_void)>,
    /// The same for the runtime's roots, when all objects have been asked. Both are there, or
    /// neither is of use.
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
    /// Whether objects of a runtime without trace are looked through word for word: each that may
    /// be an address within an object keeps it, and keeps it in place. Without this they hold no
    /// references.
    pub conservative: bool,
    /// Whether memory for traced objects is handed out with what dead ones have left in it, as that
    /// for HW_GC_LEAF always is: the runtime writes all that its trace function reads before the
    /// next safepoint.
    pub uncleared: bool,
}

mirror! {
    GcOptions, Options;
    size layout factor_percent verify least most step_ns incremental generations markers
    compact conservative uncleared
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

/// What hw_gc_set_policy has asked: how many bytes may be live and garbage when the next collection
/// ends.
pub type GcPolicy =
    Option<unsafe extern "C" fn(outcome: *const GcOutcome, context: *mut c_void) -> usize>;

/// One end of a span of a heap's collections. Later versions add fields at the end.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcEvent {
    /// Bytes of this struct.
    pub size: usize,
    /// What begins or ends: a hw_gc_span.
    pub span: u32,
    /// HW_GC_EVENT_BEGINS or HW_GC_EVENT_ENDS.
    pub edge: u32,
    /// HW_GC_EVENT_MINOR, HW_GC_EVENT_STOPPED, HW_GC_EVENT_COMPACTS.
    pub flags: u32,
    /// The thread that calls, as the system numbers it.
    pub thread: u32,
    /// When, in nanoseconds of the system's monotonic clock.
    pub time_ns: u64,
    /// The number of the collection that began last, from 1.
    pub collection: u64,
    /// Bytes, of what the span says.
    pub bytes: u64,
    /// Nanoseconds, of what the span says.
    pub ns: u64,
    /// The heap.
    pub heap: *mut GcHeap,
    /// The mutator of the thread that calls; NULL where that is not known: a sweep's end, a large
    /// object's death.
    pub mutator: *mut GcMutator,
    /// The large object. When it has died this is only an address.
    pub object: *mut c_void,
}

mirror! {
    GcEvent, Event;
    size span edge flags thread time_ns collection bytes ns heap mutator object
}

/// What hw_gc_attached calls for each mutator: state is a hw_gc_thread_state.
pub type GcMutatorVisitor =
    Option<unsafe extern "C" fn(mutator: *mut GcMutator, state: u32, context: *mut c_void)>;
