//! Objects without barriers. Stores into these objects are not reported, so the objects are traced
//! again and again.
//!
//! ```text
//!   unprotected   | object | object | ...      not roots; dead ones are dropped when marking ends
//!
//!   minor collection     each old one is traced, with or without a store into it
//!   marking in steps     each that was traced is traced again whenever the roots are reported
//!   moving               objects that they refer to stay, unless the runtime changes references
//! ```
//!
//! Foreign code writes into these objects (Ruby's WB-unprotected objects, Koichi Sasada's RGenGC,
//! 2013). Each costs a `trace` call in each minor collection. Used by `settling`, `moving`, `raw`.

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::locks::With;

pub(super) struct Unprotected {
    objects: Lock<Objects>,
}

struct Objects(Array<*mut u8>);

// SAFETY: objects are memory of the heap. A lock around this orders all accesses.
unsafe impl Send for Objects {}

impl Unprotected {
    pub(super) fn add(&self, object: *mut u8) -> bool {
        self.objects.lock().0.push(object)
    }

    pub(super) fn each(&self, with: impl FnMut(*mut u8)) {
        self.objects.lock().0.iter().copied().for_each(with);
    }

    /// Keeps the objects for which `keep` is true. The others are dead.
    pub(super) fn retain(&self, keep: impl FnMut(*mut u8) -> bool) {
        self.objects.lock().0.retain(keep);
    }

    pub(super) fn count(&self) -> usize {
        self.objects.lock().0.len()
    }

    pub(super) fn each_object(&self, with: impl Fn(*mut u8) -> *mut u8) {
        self.objects.lock().0.iter_mut().for_each(|object| *object = with(*object));
    }

    pub(super) fn end(&self) {
        self.objects.lock().0.end();
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.objects);
    }
}
