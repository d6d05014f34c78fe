//! Tables of the runtime that do not keep their objects.

use core::ffi::c_void;

use super::{heap_of, tracer_of};
use crate::errno;
use crate::hw_gc_types::{GcHeap, GcTracer, GcWeakPass};

type Pass = unsafe extern "C" fn(tracer: &heapwright::gc::raw::Tracer, context: *mut c_void);

fn pass_of(pass: GcWeakPass) -> Option<Pass> {
    // SAFETY: both types are pointers to functions with the same arguments.
    unsafe { core::mem::transmute::<GcWeakPass, Option<Pass>>(pass) }
}

/// Adds a pass over a table of the runtime to each collection. pass is called after marking, before
/// finalizers are due, and again when objects have moved, while all mutators are stopped. It calls
/// hw_gc_where for each object in the table, and drops the entry, or notes the new address. The
/// table does not keep its objects. pass calls no other function here. Any thread may call this.
///
/// Returns false with errno ENOMEM if there is no memory, EINVAL without a function.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; pass may be called until it is removed, or the
/// heap ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_add_weak_pass(
    heap: *mut GcHeap,
    pass: GcWeakPass,
    context: *mut c_void,
) -> bool {
    let Some(pass) = pass_of(pass) else {
        errno::fail(libc::EINVAL);
        return false;
    };
    // SAFETY: as the caller promises.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: as the caller promises.
    errno::or_no_memory(unsafe { heap.add_weak_pass(pass, context) })
}

/// Ends a hw_gc_add_weak_pass with the same function and context. Returns whether there was one.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_remove_weak_pass(
    heap: *mut GcHeap,
    pass: GcWeakPass,
    context: *mut c_void,
) -> bool {
    let Some(pass) = pass_of(pass) else { return false };
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.remove_weak_pass(pass, context)
}

/// In a weak pass, returns an object's new address, or NULL if the object is dead. Returns an
/// address of no object of the heap unchanged.
///
/// # Safety
///
/// tracer is the argument of the running pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_where(tracer: *mut GcTracer, object: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.where_is(object.cast()).cast()
}
