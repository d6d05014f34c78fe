//! The runtime's reports while its objects are traced. `trace` and `roots` of a `hw_gc_runtime`
//! call these functions, in the thread that the collector runs them in.

use core::ffi::c_void;

use super::tracer_of;
use crate::hw_gc_types::GcTracer;

/// Reports a reference. hw_gc_mark calls it when the tracer has no room.
///
/// # Safety
///
/// tracer is the argument of the running callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_full(tracer: *mut GcTracer, object: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.mark(object.cast());
}

/// hw_gc_mark_slot, while objects are to be moved.
///
/// # Safety
///
/// As hw_gc_mark_slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_slot_moving(tracer: *mut GcTracer, slot: *mut *mut c_void) {
    // SAFETY: by the contract the running callback got this tracer.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: by the contract the slot is a reference in the object that the callback traces.
    unsafe { tracer.mark_slot(slot.cast()) };
}

/// hw_gc_mark_movable, while objects are to be moved.
///
/// # Safety
///
/// As hw_gc_mark_movable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_movable_moving(tracer: *mut GcTracer, object: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.mark_movable(object.cast());
}

/// Reports the references in count words at slots, which lie within the traced object. They are
/// read later, some at a time, so an object may have millions.
///
/// # Safety
///
/// tracer is the argument of the running callback; the slots can be read for as long as
/// the object lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_range(
    tracer: *mut GcTracer,
    slots: *mut *mut c_void,
    count: usize,
) {
    // SAFETY: by the contract the running callback got this tracer.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: by the contract the slots can be read for as long as the object lives.
    unsafe { tracer.mark_range(slots.cast(), count) };
}

/// Returns the start of the part of the object that trace is to report now: 0 at first, then the
/// number that hw_gc_trace_rest got.
///
/// # Safety
///
/// tracer is the argument of the running callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_traced_to(tracer: *const GcTracer) -> usize {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer.cast_mut()) }.traced_to()
}

/// Reports that object, for which trace was called, has more references than were reported now.
/// trace is called again, maybe in a later step. Then hw_gc_traced_to returns the number `from`,
/// which the caller chooses: 1 to 2^60, such as the number of references reported so far. Use this
/// if one call for all references would take too long, and hw_gc_mark_range does not suit. Call it
/// last.
///
/// Between the calls a reference may move from the unreported part of the object to a reported
/// part. That store must be reported, as any other (hw_gc_write, hw_gc_touch).
///
/// # Safety
///
/// tracer and object are the arguments of trace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_trace_rest(tracer: *mut GcTracer, object: *mut c_void, from: usize) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.trace_rest(object.cast(), from);
}

/// Reports that the reference in slot is weak: the object that it leads to may die, and slot
/// becomes NULL then, before the object's finalizers run.
///
/// # Safety
///
/// tracer is the argument of the running callback; slot lies in the object that is being traced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_weak(tracer: *mut GcTracer, slot: *mut *mut c_void) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_weak(slot.cast()) };
}

/// Reports an ephemeron: the reference in key is weak, and value keeps its object as long as the
/// key's object lives. When the key's object has died, key and value become NULL. A key that is no
/// object of the heap lives for ever. A NULL key counts as alive, so the program may store the
/// value before the key.
///
/// # Safety
///
/// tracer is the argument of the running callback; key lies in the object that is being traced.
/// value lies there, too, or in static data. A value in static data lives as long as the traced
/// object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_ephemeron(
    tracer: *mut GcTracer,
    key: *mut *mut c_void,
    value: *mut *mut c_void,
) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_ephemeron(key.cast(), value.cast()) };
}

/// Reports a word that may be an address within an object, or any other value.
///
/// # Safety
///
/// tracer is the argument of the running callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_maybe(tracer: *mut GcTracer, word: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.mark_maybe(word.cast());
}

/// Reports each word of the range between the two addresses, as hw_gc_mark_maybe does.
///
/// # Safety
///
/// tracer is the argument of the running callback; the range can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_scan(tracer: *mut GcTracer, from: *const c_void, to: *const c_void) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.scan(from.cast(), to.cast()) };
}
