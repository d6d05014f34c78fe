//! When a collection begins and how far it goes; what of objects may move, and how long none is
//! wanted.

use core::ffi::c_void;

use super::of;
use crate::hw_gc_types::GcMutator;

/// Collects for about budget_ns nanoseconds: sweeps, marks, and begins a collection if one is due.
/// Where stores are not reported, marking is one step, however long.
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

/// Collects from the beginning to the end. What nothing leads to is freed when it returns.
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

/// A minor collection from the beginning to the end; or a major one, if that is due, or the heap
/// does not know what is old: it has no generations, or has not collected yet. Returns whether it
/// was a minor one.
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

/// Collects, moves objects to where they lie close together, and gives pages back that have none
/// any more. What is pinned, reported by hw_gc_mark, or may be led to by a stack that is scanned
/// stays, with what else lies in its page. While major collections are deferred, nothing moves
/// before the next one.
///
/// # Safety
///
/// The duties of heapwright_gc.h, also those for objects that move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller does what heapwright_gc.h asks for objects that
    // move.
    unsafe { mutator.compact() };
}

/// As hw_gc_compact, but every object moves that may, from full pages, too: for tests of a runtime,
/// whether it keeps an address that it does not report.
///
/// # Safety
///
/// As hw_gc_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_compact_all(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller does what heapwright_gc.h asks for objects that
    // move.
    unsafe { mutator.compact_all() };
}

/// As hw_gc_compact, but in steps: hw_gc_step does it, by and by, and returns true when it has;
/// then hw_gc_trim gives pages back.
///
/// # Safety
///
/// As hw_gc_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller does what heapwright_gc.h asks for objects that
    // move.
    unsafe { mutator.ask_compact() };
}

/// From now on the object stays where it is, until hw_gc_unpin was called as often. It is not
/// kept. Returns whether it is an object of the heap.
///
/// # Safety
///
/// The duties of heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_pin(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    unsafe { of(mutator) }.pin(object.cast())
}

/// Ends a hw_gc_pin. Before the object dies.
///
/// # Safety
///
/// The object was pinned more often than unpinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_unpin(mutator: *mut GcMutator, object: *mut c_void) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the object was pinned more often than unpinned.
    unsafe { mutator.unpin(object.cast()) };
}

/// The object is to have size bytes. Returns whether it has them where it is. If not, or if a
/// smaller slot would do, it goes to a slot that suits when the heap is compacted next, if it may
/// be moved: then the runtime's wanted says the size again.
///
/// # Safety
///
/// An object of the heap, which is the caller's to change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resize(
    mutator: *mut GcMutator,
    object: *mut c_void,
    size: usize,
) -> bool {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract an object of the heap, which is the caller's to change.
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

/// From now on a collection is due, so that hw_gc_step begins one: for a program that has time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.ask();
}

/// Not now: until hw_gc_resume, allocation does no collecting of its own. Nests. The limit of
/// the heap still holds.
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

/// No major collection now: until hw_gc_resume_majors, collections look only at what is young, if
/// the heap has generations, and memory for it. For requests, between which there is time for the
/// rest. Nests, also with those of other mutators. Only within the first such scope of a heap there
/// may be a major collection, if it was chosen before.
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

/// Whether the next collection is to be a major one, and would be but for hw_gc_defer_majors.
/// hw_gc_ask and hw_gc_step make it, a little at a time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_major_owed(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_major_owed()
}
