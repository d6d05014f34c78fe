//! The structs of the collected heaps' part of `include/heapwright.h` that differ between C and
//! Rust; `gc_abi` holds the structs that both share. `const` assertions tie each to the library's
//! own. [`GcMutator`] and [`GcTracer`] are only heads, for the inline functions of
//! `heapwright_gc.h`.

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
/// Sizes in the table: multiples of 8 up to 32 KiB.
pub const GC_PLACES: usize = 4097;
/// A mutator's barrier while objects are being moved.
pub const GC_MOVING: u32 = 4;

const _: () = assert!(shown::MOVING == GC_MOVING);
/// Stretches of free slots: allocation advances next. For heapwright_gc.h.
#[repr(C)]
pub struct GcRegion {
    /// The next slot.
    pub next: *mut c_char,
    /// The end of the stretch's last slot.
    pub end: *mut c_char,
    /// The next stretch, or NULL. Its first two words are its end and its next stretch.
    pub hole: *mut *mut c_void,
    /// Bytes of a slot.
    pub slot: u32,
    /// heapwright's own.
    pub page: u32,
}

/// A thread's access to a heap, from hw_gc_attach. Undeclared fields are heapwright's own.
#[repr(C)]
pub struct GcMutator {
    /// Not 0 if a collection requests a call of hw_gc_safepoint.
    pub poll: u32,
    /// Not 0 if stores of references must be reported. HW_GC_MOVING if all stores must be.
    pub barrier: u32,
    /// The heap.
    pub heap: *mut GcHeap,
    /// A region for each pool and kind: pool * 8 + kind.
    pub regions: [GcRegion; GC_REGIONS],
    /// The region for a traced object of up to 32 KiB, by (size + 7) / 8, as bytes from the first
    /// region.
    pub places: [u16; GC_PLACES],
    /// An object's mark: a bit for 16 bytes of its address.
    pub marks: *const u8,
    /// The runtime's word: see hw_gc_data.
    pub data: *mut c_void,
    /// The entry of each 64 KiB of the heaps' addresses, by address >> 16. Other addresses have
    /// none.
    pub units: *const u32,
    /// The entry of a page of the first region. For each later region, add one.
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

/// Receives references in a callback, and is valid during its call. Undeclared fields are
/// heapwright's own.
#[repr(C)]
pub struct GcTracer {
    /// The place of the next reference.
    pub next: *mut *mut c_void,
    /// The end of the room for references.
    pub end: *mut *mut c_void,
    /// Not 0 if objects are to be moved, and slots are reported to hw_gc_mark_slot_moving.
    pub by_slot: usize,
}

const _: () = {
    assert!(same(shown::TRACER[0], field!(GcTracer, next)));
    assert!(same(shown::TRACER[1], field!(GcTracer, end)));
    assert!(same(shown::TRACER[2], field!(GcTracer, by_slot)));
};

/// A language runtime's callbacks. Leave unused callbacks zero; only trace or trace_kind is
/// required, if objects are traced. Each callback gets data. No callback but out_of_memory may
/// allocate, collect, throw or jump out.
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
    /// An object of kind HW_GC_FREED has died; size is the size of its slot. The callback must look
    /// at no other object.
    pub free: Option<unsafe extern "C" fn(object: *mut c_void, size: usize, data: *mut c_void)>,
    /// The name of an object's type, for dumps and verifiers: a string that stays.
    pub type_name:
        Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> *const c_char>,
    /// The size, in bytes, that an object is to have after a move: the object goes to the pool that
    /// fits. 0 stands for its present size.
    pub wanted: Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> usize>,
    /// An object has moved to a slot of size bytes. from, its old place, is only an address. The
    /// callback may change the object, but may not store a reference into it.
    pub moved: Option<
        unsafe extern "C" fn(
            object: *mut c_void,
            from: *const c_void,
            size: usize,
            data: *mut c_void,
        ),
    >,
    /// Called at each event of a collection. The thread that collects, sweeps or allocates calls
    /// it, and holds no lock of the heap. The callback may read objects, call hw_gc_stats and
    /// hw_gc_attached, call malloc, and write files. It must not allocate in this heap, store
    /// references, or start a collection. It must not attach, detach, enter or leave a mutator.
    /// While the world is stopped (HW_GC_EVENT_STOPPED) it must take no lock that a thread may hold
    /// at a safepoint. Its time is part of the pause. The events of a collection come in order,
    /// except that the end of a pause is reported when the world runs again.
    pub event: Option<unsafe extern "C" fn(event: *const GcEvent, data: *mut c_void)>,
    /// As trace, but also gets the object's kind. If both are set, trace is used.
    pub trace_kind: Option<
        unsafe extern "C" fn(
            tracer: *mut GcTracer,
            object: *mut c_void,
            kind: u32,
            data: *mut c_void,
        ),
    >,
    /// Marking met a reference outside the heap: to static data, to memory of malloc, to another
    /// heap. The runtime may mark its own data there, and report references from it, as trace does.
    /// Any thread may run the callback, as with trace, but only between the ends of
    /// HW_GC_SPAN_TRACE. It is called once for each such reference, and not for each target. NULL,
    /// and values that are no multiple of 8, are left out. A minor collection reports references
    /// from young objects and roots.
    pub outside: Option<
        unsafe extern "C" fn(tracer: *mut GcTracer, reference: *mut c_void, data: *mut c_void),
    >,
    /// There is no memory for an object, or none under the limit after a collection. The callback
    /// returns true if it has freed memory or raised the limit. Then the allocation tries again.
    /// Otherwise the allocation returns NULL. The callback may collect, run finalizers, and longjmp
    /// out. Its own allocations in this heap may call it again.
    pub out_of_memory: Option<
        unsafe extern "C" fn(
            mutator: *mut GcMutator,
            size: usize,
            kind: u32,
            data: *mut c_void,
        ) -> bool,
    >,
    /// The size from which a large object is an event (HW_GC_SPAN_LARGE). With 0, no object is.
    pub large_bytes: usize,
    /// Objects have moved. For each reference of object that trace reports by hw_gc_mark_movable,
    /// the callback stores the result of hw_gc_moved, if that is not NULL. Called while the world
    /// is stopped, in one pause with the moves, for each object of the heap at its new address.
    /// That includes dead objects that await their free: their references may lead to freed objects
    /// and must not be followed. The callback must not allocate in this heap. If it reads other
    /// objects, their references may still be unchanged. A heap with this callback makes all moves
    /// in one pause, not in steps.
    pub update: Option<unsafe extern "C" fn(object: *mut c_void, data: *mut c_void)>,
    /// As update, for the runtime's roots, after all objects. Set both callbacks or neither.
    pub update_roots: Option<unsafe extern "C" fn(data: *mut c_void)>,
}

mirror! {
    GcRuntime, Runtime;
    size data trace roots free type_name wanted moved event trace_kind outside out_of_memory large_bytes
    update update_roots
}

/// The slot sizes of a heap.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum GcLayout {
    /// Steps of 16 bytes to 256, then eight for each doubling to 1 KiB, then four to 32 KiB.
    Fine = 0,
    /// 40, 80, 160, 320 and 640 bytes.
    Ruby = 1,
    /// Powers of two from 32 bytes to 32 KiB, and 40.
    Powers = 2,
    /// 40 bytes alone.
    Single = 3,
}

/// The options of a heap. Zero is a good choice for each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcOptions {
    /// sizeof(hw_gc_options).
    pub size: usize,
    /// A hw_gc_layout: the pools' slot sizes.
    pub layout: u32,
    /// The memory target in percent of the live bytes: more than 100, or 0 for 200.
    pub factor_percent: u32,
    /// HW_GC_VERIFY_HEAP, HW_GC_VERIFY_BARRIERS, HW_GC_STRESS.
    pub verify: u32,
    /// Bytes that each mutator may at least allocate between two collections. 0 means 4 MiB.
    pub least: usize,
    /// Bytes of pages and external memory beyond which no page is taken. 0 means no limit.
    pub most: usize,
    /// The longest step of an allocation in an incremental heap, in nanoseconds. 0 means 500000.
    pub step_ns: u64,
    /// Whether all stores of references are reported (hw_gc_write), so that marking proceeds in
    /// steps.
    pub incremental: bool,
    /// Whether all stores of references are reported (hw_gc_write), so that most collections are
    /// minor: they skip objects that survived two collections.
    pub generations: bool,
    /// The most threads that mark, stopped mutators included, but never more than processors. If
    /// there is much to mark, marker threads start, up to this number, as far as processors are
    /// idle. They end after a second without marking. 0 means one per processor, up to 4. With 1
    /// there are no marker threads.
    pub markers: u32,
    /// Whether a heap with far more pages than its target moves objects close together. It moves
    /// objects to which only handles and slots (hw_gc_mark_slot) lead. hw_gc_compact moves them at
    /// once.
    pub compact: bool,
    /// Whether objects of a runtime without trace are scanned word for word. Each word that may be
    /// an address within an object then keeps that object, in its place. If not, objects of such a
    /// runtime hold no references.
    pub conservative: bool,
    /// Whether memory for traced objects keeps the bytes of dead objects, as memory for HW_GC_LEAF
    /// always does. The runtime then writes, before the next safepoint, all that its trace function
    /// reads.
    pub uncleared: bool,
}

mirror! {
    GcOptions, Options;
    size layout factor_percent verify least most step_ns incremental generations markers
    compact conservative uncleared
}

/// The function that hw_gc_walk calls for each object. Return false to stop the walk.
pub type GcVisitor = Option<
    unsafe extern "C" fn(object: *mut c_void, size: usize, kind: u32, context: *mut c_void) -> bool,
>;

/// The function that hw_gc_run_finalizers calls.
pub type GcFinalizer = Option<unsafe extern "C" fn(object: *mut c_void, context: *mut c_void)>;

/// The function that hw_gc_tell_when_due calls.
pub type GcSomeAreDue = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// The function that reads a table of the runtime: see hw_gc_add_weak_pass.
pub type GcWeakPass = Option<unsafe extern "C" fn(tracer: *mut GcTracer, context: *mut c_void)>;

/// The function of hw_gc_set_policy: returns how many bytes may be live and garbage when the next
/// collection ends.
pub type GcPolicy =
    Option<unsafe extern "C" fn(outcome: *const GcOutcome, context: *mut c_void) -> usize>;

/// One end of a span of a heap's collections. Later versions add fields at the end.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcEvent {
    /// Bytes of this struct.
    pub size: usize,
    /// The span: a hw_gc_span.
    pub span: u32,
    /// HW_GC_EVENT_BEGINS or HW_GC_EVENT_ENDS.
    pub edge: u32,
    /// HW_GC_EVENT_MINOR, HW_GC_EVENT_STOPPED, HW_GC_EVENT_COMPACTS.
    pub flags: u32,
    /// The calling thread's number in the system.
    pub thread: u32,
    /// The time, in nanoseconds of the system's monotonic clock.
    pub time_ns: u64,
    /// The number of the collection that began last, from 1.
    pub collection: u64,
    /// Bytes, as the span defines them.
    pub bytes: u64,
    /// Nanoseconds, as the span defines them.
    pub ns: u64,
    /// The heap.
    pub heap: *mut GcHeap,
    /// The calling thread's mutator, or NULL if unknown (a sweep's end, a large object's death).
    pub mutator: *mut GcMutator,
    /// The large object. When it has died this is only an address.
    pub object: *mut c_void,
}

mirror! {
    GcEvent, Event;
    size span edge flags thread time_ns collection bytes ns heap mutator object
}

/// The function that hw_gc_attached calls for each mutator: state is a hw_gc_thread_state.
pub type GcMutatorVisitor =
    Option<unsafe extern "C" fn(mutator: *mut GcMutator, state: u32, context: *mut c_void)>;
