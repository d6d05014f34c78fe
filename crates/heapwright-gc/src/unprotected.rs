//! Objects without barriers: stores into them are not reported, so they are looked at again and
//! again.
//!
//! ```text
//!   unprotected   | object | object | ...      not roots; what dies is dropped when marking ends
//!
//!   minor collection     each that is old is traced, whether something was stored into it or not
//!   marking in steps     each that was traced is traced again in the last step, with the roots
//!   moving               what they lead to stays where it is, unless the runtime changes references itself
//! ```
//!
//! For objects that foreign code writes into (Ruby's WB-unprotected objects, Koichi Sasada's
//! RGenGC, 2013): a runtime may have barriers for most of its types, and say of the others that
//! they have none. Each costs a call of `trace` in each minor collection.
//!
//! Called by `settling` and `moving`.

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::locks::With;

/// A heap's objects without barriers. Zero has none.
pub(super) struct Unprotected {
    objects: Lock<Objects>,
}

struct Objects(Array<*mut u8>);

// SAFETY: objects are memory of the heap that this is part of; the lock around this orders all
// else.
unsafe impl Send for Objects {}

impl Unprotected {
    /// Adds an object. False: there is no memory.
    pub(super) fn add(&self, object: *mut u8) -> bool {
        self.objects.lock().0.push(object)
    }

    /// Calls `with` for each.
    pub(super) fn each(&self, with: impl FnMut(*mut u8)) {
        self.objects.lock().0.iter().copied().for_each(with);
    }

    /// Keeps those of which `keep` says so: the others are dead.
    pub(super) fn retain(&self, keep: impl FnMut(*mut u8) -> bool) {
        self.objects.lock().0.retain(keep);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.objects.lock().0.len()
    }

    /// Changes each object's address to what `with` says.
    pub(super) fn each_object(&self, with: impl Fn(*mut u8) -> *mut u8) {
        self.objects.lock().0.iter_mut().for_each(|object| *object = with(*object));
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        self.objects.lock().0.end();
    }

    /// Hands its lock to `with`.
    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.objects);
    }
}
