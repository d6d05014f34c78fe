//! Finalizers: a runtime registers, cancels and runs them.

use core::ffi::c_void;
use core::ptr;

use heapwright_substrate::sync::atomic::Ordering;

use super::super::finalizers::{Entry, Finalizer, PRIORITIES};
use super::Mutator;

impl Mutator {
    /// Registers `run`, which becomes due when a collection finds the object unreachable. Returns
    /// false if there is no memory.
    ///
    /// # Safety
    ///
    /// `object` is of this heap. The duties of the [module](super) hold for `run`, except that it
    /// may allocate.
    pub unsafe fn finalize(&self, object: *mut u8, run: Finalizer, context: *mut c_void) -> bool {
        self.register(Entry::new(object, run, context, false, 0))
    }

    /// As [`Mutator::finalize`], with a priority and a context. The priority is a number below
    /// [`PRIORITIES`](super::super::PRIORITIES). 0 is the highest. The context is an object of the
    /// heap, or null. The heap keeps the context while the object lives or the finalizer is due. A
    /// context that leads to the object does not keep the object. If the object of a due finalizer
    /// leads to another object, finalizers of a lower priority for that object are not due yet.
    /// Returns false if there is no memory, or no such priority.
    ///
    /// # Safety
    ///
    /// As [`Mutator::finalize`]; `context` is an object of this heap, or null.
    pub unsafe fn finalize_with(
        &self,
        object: *mut u8,
        run: Finalizer,
        context: *mut u8,
        priority: u8,
    ) -> bool {
        let entry = Entry::new(object, run, context.cast(), !context.is_null(), priority);
        priority < PRIORITIES as u8 && self.register(entry)
    }

    fn register(&self, entry: Entry) -> bool {
        let trace = &self.heap().trace;
        let added = trace.finalizers.lock().add(entry);
        let context = entry.traced_context().unwrap_or(ptr::null_mut());
        self.inner().keep_this_time([entry.object(), context]);
        added
    }

    /// Cancels all finalizers of an object, except due ones. Returns their number.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    pub unsafe fn cancel_finalizers(&self, object: *mut u8) -> usize {
        self.heap().trace.finalizers.lock().cancel(object)
    }

    /// Runs up to `most` due finalizers. Returns their number.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    pub unsafe fn run_finalizers(&self, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            // A taken finalizer is no root, so a handle keeps the object while the finalizer runs.
            let (handles, own) = (&self.heap().trace.handles, &self.inner().handles);
            let Some(root) = handles.make(own, ptr::null_mut()) else { break };
            let Some(kept) = handles.make(own, ptr::null_mut()) else {
                // SAFETY: the cell was made above, and is not used any more.
                unsafe { handles.free(own, root) };
                break;
            };
            let next = self.heap().trace.finalizers.lock().next();
            if let Some(next) = &next {
                // SAFETY: the cell is the heap's, made above and not yet freed. It is an atomic, so
                // the collector may use it, too.
                unsafe { &*root }.store(next.object(), Ordering::Relaxed);
                // The finalizer gets the object's address, so the object must not move.
                let pinned = self.heap().space.pin(next.object());
                let context = next.traced_context().unwrap_or(ptr::null_mut());
                // SAFETY: the cell is the heap's, made above and not yet freed. It is an atomic, so
                // the collector may use it, too.
                unsafe { &*kept }.store(context, Ordering::Relaxed);
                let context_pinned = self.heap().space.pin(context);
                // SAFETY: the runtime registered the finalizer, and the object lives.
                unsafe { (next.run)(next.object().cast(), next.context) };
                if pinned {
                    self.heap().space.unpin(next.object());
                }
                if context_pinned {
                    self.heap().space.unpin(context);
                }
            }
            // SAFETY: the cell was made above, and is not used any more.
            unsafe { handles.free(own, kept) };
            // SAFETY: the cell was made above, and is not used any more.
            unsafe { handles.free(own, root) };
            if next.is_none() {
                break;
            }
            count += 1;
        }
        count
    }

    /// Takes the next due finalizer, for a caller that runs it: its object and its context.
    /// Afterwards the object is safe only until the next collection.
    #[must_use]
    pub fn take_due(&self) -> Option<(*mut u8, *mut c_void)> {
        let next = self.heap().trace.finalizers.lock().next()?;
        Some((next.object(), next.context))
    }

    /// Returns the number of due finalizers.
    #[must_use]
    pub fn finalizers_due(&self) -> usize {
        self.heap().trace.finalizers.lock().pending()
    }
}
