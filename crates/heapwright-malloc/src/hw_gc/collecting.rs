//! When a collection begins, how far it goes, which objects it moves, and when it is deferred.

use core::ffi::c_void;

use super::of;
use crate::hw_gc_types::GcMutator;

/// Collects for about budget_ns nanoseconds: sweeps, marks, and begins a collection if one is due.
/// If stores are not reported, marking is one step, however long.
///
/// Returns whether nothing is left to do.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_step(mutator: *mut GcMutator, budget_ns: u64) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.step(budget_ns) }
}

/// Makes a whole collection. Unreachable objects are freed when it returns.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_collect(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.collect() };
}

/// Makes a whole minor collection. Makes a major collection instead if one is due, or if the heap
/// cannot tell old objects: it has no generations, or has not collected yet. Returns whether the
/// collection was a minor one.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_collect_minor(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.collect_young() }
}

/// Collects, moves objects close together, and gives empty pages back. A page stays as it is if an
/// object in it is pinned, was reported by hw_gc_mark, or may be reached from a scanned stack.
/// While major collections are deferred, nothing moves before the next major collection.
///
/// # Safety
///
/// The duties of heapwright_gc.h, also those for objects that move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller fulfils the duties of heapwright_gc.h for objects
    // that move.
    unsafe { mutator.compact() };
}

/// As hw_gc_compact, but moves every object that may move, also from full pages. Tests of a runtime
/// call this to find addresses that the runtime does not report.
///
/// # Safety
///
/// As hw_gc_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_compact_all(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller fulfils the duties of heapwright_gc.h for objects
    // that move.
    unsafe { mutator.compact_all() };
}

/// As hw_gc_compact, but in steps of hw_gc_step, which returns true when the compaction is
/// complete. Then hw_gc_trim gives pages back.
///
/// # Safety
///
/// As hw_gc_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller fulfils the duties of heapwright_gc.h for objects
    // that move.
    unsafe { mutator.ask_compact() };
}

/// Pins the object at its address, until hw_gc_unpin was called as often as hw_gc_pin. A pin does
/// not keep the object alive. Returns false if object is on no page of the heap.
///
/// # Safety
///
/// The duties of heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_pin(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    unsafe { of(mutator) }.pin(object.cast())
}

/// Ends a hw_gc_pin. Call it before the object dies.
///
/// # Safety
///
/// The object was pinned more often than unpinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_unpin(mutator: *mut GcMutator, object: *mut c_void) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the object was pinned more often than unpinned.
    unsafe { mutator.unpin(object.cast()) };
}

/// Gives the object size bytes. Returns whether its slot has them. If not, or if a smaller slot
/// would do, the next compaction moves the object to a fitting slot, if it may be moved. The
/// runtime's wanted then returns the size again.
///
/// # Safety
///
/// object is an object of the heap, and only the caller changes it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resize(
    mutator: *mut GcMutator,
    object: *mut c_void,
    size: usize,
) -> bool {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the object is in the heap, and the caller may change it.
    unsafe { mutator.resize(object.cast(), size) }
}

/// Whether a collection is due or under way: a good moment for hw_gc_step.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_owed(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_owed()
}

/// Makes a collection due, so that hw_gc_step begins one: for a program that has time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.ask();
}

/// Defers collections: until hw_gc_resume, no allocation collects. If the limit of the heap is
/// reached meanwhile, allocations fail. Calls nest.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_defer(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.defer();
}

/// Ends a hw_gc_defer.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resume(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.resume();
}

/// Defers major collections: until hw_gc_resume_majors, collections are minor, if the heap has
/// generations and memory for it. This is for a server that collects between its requests. Calls
/// nest, also with calls of other mutators. The first such scope of a heap may see one major
/// collection that was chosen before.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_defer_majors(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.defer_majors();
}

/// Ends a hw_gc_defer_majors.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resume_majors(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.resume_majors();
}

/// Whether hw_gc_defer_majors holds back a major collection that is due. hw_gc_ask and hw_gc_step
/// make this collection, a little at a time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_major_owed(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_major_owed()
}
