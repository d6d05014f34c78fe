//! The runtime's callbacks, as the C interface has them, and how they are called.
//!
//! Each is called as its duties allow (see [`raw`](super)): those that look at objects by any thread,
//! `free` by the thread that sweeps or ends the heap, `wanted` and `moved` while the world stands still.
//!
//! Called by `tracer`, `cycle`, `sweep`, `moving`, `heap`, `dump` and `verify`.

use core::ffi::{c_char, c_void};
use core::ptr;

use super::Tracer;

/// What the language's runtime does for its heap. The C interface's struct.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Runtime {
    /// Bytes of this struct, as the caller knows it.
    pub size: usize,
    /// Handed to each callback.
    pub data: *mut c_void,
    /// Reports the references of an object.
    pub trace:
        Option<unsafe extern "C" fn(tracer: &Tracer, object: *mut c_void, data: *mut c_void)>,
    /// Reports the runtime's roots.
    pub roots: Option<unsafe extern "C" fn(tracer: &Tracer, data: *mut c_void)>,
    /// An object of kind `FREED` has died; `size` is that of its slot.
    pub free: Option<unsafe extern "C" fn(object: *mut c_void, size: usize, data: *mut c_void)>,
    /// The name of an object's type, for dumps and verifiers: a string that stays.
    pub type_name:
        Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> *const c_char>,
    /// How many bytes an object that is to be moved is to have where it goes; 0: as many as it has.
    pub wanted: Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> usize>,
    /// An object has moved: it is at `to`, in a slot of `size` bytes; where it was, `from`, is only an
    /// address. It may be changed, but references stored to it are reported to nobody, so none is.
    pub moved: Option<
        unsafe extern "C" fn(to: *mut c_void, from: *const c_void, size: usize, data: *mut c_void),
    >,
}

impl Runtime {
    /// A runtime whose objects hold no references, which has no roots but handles.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            size: size_of::<Self>(),
            data: ptr::null_mut(),
            trace: None,
            roots: None,
            free: None,
            type_name: None,
            wanted: None,
            moved: None,
        }
    }

    /// Has the references of an object reported. False: the runtime has no function for it.
    #[inline]
    pub(crate) fn trace(&self, tracer: &Tracer, object: *mut u8) -> bool {
        let Some(trace) = self.trace else { return false };
        // SAFETY: an object of the heap; the rest is the runtime's duty.
        unsafe { trace(tracer, object.cast(), self.data) };
        true
    }

    pub(crate) fn roots(&self, tracer: &Tracer) {
        if let Some(roots) = self.roots {
            // SAFETY: the runtime's duty.
            unsafe { roots(tracer, self.data) };
        }
    }

    pub(crate) fn free(&self, object: *mut u8, size: usize) {
        if let Some(free) = self.free {
            // SAFETY: a dead object of the heap, once; the rest is the runtime's duty.
            unsafe { free(object.cast(), size, self.data) };
        }
    }

    /// Bytes that an object is to have where it moves to, if the runtime says so.
    pub(crate) fn wanted(&self, object: *mut u8) -> Option<usize> {
        // SAFETY: an object of the heap; the rest is the runtime's duty.
        let wanted = self.wanted.map_or(0, |wanted| unsafe { wanted(object.cast(), self.data) });
        (wanted != 0).then_some(wanted)
    }

    /// An object has moved.
    pub(crate) fn moved(&self, to: *mut u8, from: *mut u8, size: usize) {
        if let Some(moved) = self.moved {
            // SAFETY: an object of the heap, where it is now; the rest is the runtime's duty.
            unsafe { moved(to.cast(), from.cast(), size, self.data) };
        }
    }

    /// The name of an object's type, or null.
    pub(crate) fn type_name(&self, object: *const u8) -> *const c_char {
        // SAFETY: an object of the heap; the rest is the runtime's duty.
        self.type_name.map_or(ptr::null(), |name| unsafe { name(object.cast(), self.data) })
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}
