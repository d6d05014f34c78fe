//! Guardians, as in Scheme: objects that retrieve other objects after these became unreachable.

use core::ffi::c_void;
use core::ptr;

use super::of;
use crate::errno;
use crate::hw_gc_types::GcMutator;

/// Makes an object a guardian (Dybvig, Bruggeman, Eby: "Guardians in a generation-based garbage
/// collector", 1993). Returns its number, which the runtime keeps in the object. An object
/// registered with the guardian can be retrieved from it when nothing else leads to that object, as
/// long as the guardian lives. The number is invalid after the guardian's death.
///
/// Returns 0 with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_guardian_new(mutator: *mut GcMutator, object: *mut c_void) -> u32 {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    let made = unsafe { mutator.new_guardian(object.cast()) };
    made.unwrap_or_else(|| {
        errno::fail(libc::ENOMEM);
        0
    })
}

/// Registers object with a guardian. When nothing leads to object any more, representative can be
/// retrieved. representative is object itself, or another object, which is kept until then. An
/// object may be registered several times, and is retrieved as often. Weak references to a
/// retrieved object stay.
///
/// Returns false with errno ENOMEM if there is no memory, or if there is no such guardian.
///
/// # Safety
///
/// mutator is this thread's; object and representative are objects of its heap; guardian is of
/// hw_gc_guardian_new, and its object lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_guard(
    mutator: *mut GcMutator,
    guardian: u32,
    object: *mut c_void,
    representative: *mut c_void,
) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    errno::or_no_memory(unsafe { mutator.guard(guardian, object.cast(), representative.cast()) })
}

/// Retrieves a guardian's next object, which the caller must keep alive, or NULL. Constant time.
///
/// # Safety
///
/// mutator is this thread's; guardian is of hw_gc_guardian_new, and its object lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_retrieve(mutator: *mut GcMutator, guardian: u32) -> *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.retrieve(guardian) }.map_or(ptr::null_mut(), <*mut u8>::cast)
}
