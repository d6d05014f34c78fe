//! The runtime's callbacks, with the layout of the C interface, and their calls.
//!
//! [`raw`](super::raw) lists the runtime's duties. Any thread may call callbacks that read objects.
//! The thread that sweeps or ends the heap calls `free`. `wanted` and `moved` run while the world
//! is stopped. `event` runs while the thread holds no lock.

use core::ffi::{c_char, c_void};
use core::ptr;

use super::TRACED;
use super::event::Event;
use super::page::object_kind;
use super::tracer::Tracer;

/// A function that updates a weak table.
pub type WeakPass = unsafe extern "C" fn(tracer: &Tracer, context: *mut c_void);

/// The callbacks of a language's runtime for its heap. C has the same struct.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Runtime {
    /// The size of this struct, as the caller knows it.
    pub size: usize,
    /// An argument of each callback.
    pub data: *mut c_void,
    /// Reports the references of an object.
    pub trace:
        Option<unsafe extern "C" fn(tracer: &Tracer, object: *mut c_void, data: *mut c_void)>,
    /// Reports the runtime's roots.
    pub roots: Option<unsafe extern "C" fn(tracer: &Tracer, data: *mut c_void)>,
    /// An object of kind `FREED` has died. `size`: the bytes of its slot.
    pub free: Option<unsafe extern "C" fn(object: *mut c_void, size: usize, data: *mut c_void)>,
    /// The name of an object's type, for dumps and verifiers: a string that is never freed.
    pub type_name:
        Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> *const c_char>,
    /// Returns the new size in bytes of an object that is about to move, or 0 for the size it has.
    pub wanted: Option<unsafe extern "C" fn(object: *const c_void, data: *mut c_void) -> usize>,
    /// An object has moved to `to`, into a slot of `size` bytes. Its old address `from` is only a
    /// number. The callback may change the object, but stores no reference into it, because no
    /// barrier would report that store.
    pub moved: Option<
        unsafe extern "C" fn(to: *mut c_void, from: *const c_void, size: usize, data: *mut c_void),
    >,
    /// A span of a collection begins or ends: see [`Event`]. Called by the thread that collects,
    /// sweeps or allocates, which holds no lock of the heap's. The callback may look at objects,
    /// read statistics, call `malloc` and write files. It allocates nothing in this heap, stores no
    /// references, collects nothing, attaches and detaches no thread, and does not unwind. While
    /// the world is stopped ([`STOPPED`](super::STOPPED)), it takes no lock that a thread may hold
    /// at a safepoint. Its time is then part of the pause.
    pub event: Option<unsafe extern "C" fn(event: &Event, data: *mut c_void)>,
    /// As `trace`, but also gets the object's kind. `trace` takes precedence.
    pub trace_kind: Option<
        unsafe extern "C" fn(tracer: &Tracer, object: *mut c_void, kind: u32, data: *mut c_void),
    >,
    /// Marking met a reference that leads to no object of the heap, but to static data, to memory
    /// of `malloc`, or to another heap. The runtime may mark its own data there, and report the
    /// references in it, by value or by slot. Any marking thread calls this, once for each such
    /// reference, not once for each target. There is no call for null or for a value that is no
    /// multiple of 8. All calls are within a [`Span::Trace`](super::Span::Trace). In a minor
    /// collection, the references are those of young objects and roots.
    pub outside:
        Option<unsafe extern "C" fn(tracer: &Tracer, reference: *mut c_void, data: *mut c_void)>,
    /// There is no memory for an object, or none within the limit, even after a collection. True:
    /// try again, because the runtime has dropped references or raised the limit. False: the
    /// allocation returns null. The allocating thread calls this. So the callback may collect, run
    /// finalizers and, from C, leave the allocation by `longjmp`. Its own allocations in this heap
    /// may call the callback again.
    pub out_of_memory: Option<
        unsafe extern "C" fn(
            mutator: *mut c_void,
            size: usize,
            kind: u32,
            data: *mut c_void,
        ) -> bool,
    >,
    /// A large object of at least this many bytes is an event, [`Span::Large`](super::Span::Large).
    /// 0: no object is.
    pub large_bytes: usize,
    /// Objects have moved: changes each reference that this object reports by
    /// [`Tracer::mark_movable`](super::raw::Tracer::mark_movable) to the result of
    /// [`Mutator::moved`](super::raw::Mutator::moved). Called while the world is stopped, in one
    /// pause with the moves, for each object of the heap at its new address. Also called for a dead
    /// object that awaits its `free`. The references of a dead object may lead to freed objects,
    /// which must not be read. The callback allocates nothing in this heap. It reads another object
    /// only if unchanged references in that object do no harm. A heap whose runtime has this
    /// callback moves all objects in one pause, not in steps.
    pub update: Option<unsafe extern "C" fn(object: *mut c_void, data: *mut c_void)>,
    /// As `update`, for the runtime's roots. Called after all objects were updated. Both callbacks
    /// are set, or neither is used.
    pub update_roots: Option<unsafe extern "C" fn(data: *mut c_void)>,
}

impl Runtime {
    /// A runtime without callbacks: its objects hold no references, and handles are its only roots.
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
            event: None,
            trace_kind: None,
            outside: None,
            out_of_memory: None,
            large_bytes: 0,
            update: None,
            update_roots: None,
        }
    }

    #[inline]
    pub(crate) fn trace(&self, tracer: &Tracer, object: *mut u8) -> bool {
        if let Some(trace) = self.trace {
            // SAFETY: the object is the heap's. The functions are valid as long as the heap.
            unsafe { trace(tracer, object.cast(), self.data) };
        } else if let Some(trace) = self.trace_kind {
            let kind = object_kind(object).unwrap_or(TRACED);
            // SAFETY: the object is the heap's. The functions are valid as long as the heap.
            unsafe { trace(tracer, object.cast(), kind, self.data) };
        } else {
            return false;
        }
        true
    }

    pub(crate) fn hears_of_outside(&self) -> bool {
        self.outside.is_some()
    }

    pub(crate) fn outside(&self, tracer: &Tracer, reference: *mut u8) {
        if let Some(outside) = self.outside {
            // SAFETY: the runtime keeps its functions valid as long as the heap.
            unsafe { outside(tracer, reference.cast(), self.data) };
        }
    }

    /// Tells the runtime that there is no memory for an object. Returns whether to try again.
    pub(crate) fn out_of_memory(&self, mutator: *mut c_void, size: usize, kind: u32) -> bool {
        // SAFETY: the mutator belongs to the calling thread, which may collect. The runtime keeps
        // its functions valid as long as the heap.
        self.out_of_memory.is_some_and(|asked| unsafe { asked(mutator, size, kind, self.data) })
    }

    pub(crate) fn roots(&self, tracer: &Tracer) {
        if let Some(roots) = self.roots {
            // SAFETY: the runtime keeps its functions valid as long as the heap.
            unsafe { roots(tracer, self.data) };
        }
    }

    pub(crate) fn free(&self, object: *mut u8, size: usize) {
        if let Some(free) = self.free {
            // SAFETY: the object is the heap's, is dead, and is freed only once. The runtime keeps
            // its functions valid as long as the heap.
            unsafe { free(object.cast(), size, self.data) };
        }
    }

    pub(crate) fn wanted(&self, object: *mut u8) -> Option<usize> {
        // SAFETY: the object is the heap's. The functions are valid as long as the heap.
        let wanted = self.wanted.map_or(0, |wanted| unsafe { wanted(object.cast(), self.data) });
        (wanted != 0).then_some(wanted)
    }

    pub(crate) fn moved(&self, to: *mut u8, from: *mut u8, size: usize) {
        if let Some(moved) = self.moved {
            // SAFETY: the object is the heap's, at its new address. The runtime keeps its functions
            // valid as long as the heap.
            unsafe { moved(to.cast(), from.cast(), size, self.data) };
        }
    }

    pub(crate) fn updates(&self) -> bool {
        self.update.is_some() && self.update_roots.is_some()
    }

    pub(crate) fn update(&self, object: *mut u8) {
        if let Some(update) = self.update {
            // SAFETY: the object is the heap's, at its new address. The runtime keeps its functions
            // valid as long as the heap.
            unsafe { update(object.cast(), self.data) };
        }
    }

    pub(crate) fn update_roots(&self) {
        if let Some(update) = self.update_roots {
            // SAFETY: the runtime keeps its functions valid as long as the heap.
            unsafe { update(self.data) };
        }
    }

    pub(crate) fn event(&self, of: &Event) {
        if let Some(event) = self.event {
            // SAFETY: the runtime keeps its functions valid as long as the heap.
            unsafe { event(of, self.data) };
        }
    }

    /// The name of an object's type, or null.
    pub(crate) fn type_name(&self, object: *const u8) -> *const c_char {
        // SAFETY: the object is the heap's. The functions are valid as long as the heap.
        self.type_name.map_or(ptr::null(), |name| unsafe { name(object.cast(), self.data) })
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}
