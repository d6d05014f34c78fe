//! Objects that guardians keep, or that finalizers keep as contexts, through tables of the heap.
//!
//! ```text
//!   retrievable  the guardian's object --> each retrievable object   while the guardian lives
//!   registered   the object            --> its representative       while object and guardian live
//!   finalizer    the object            --> its context               while the object lives
//! ```
//!
//! Marking finds these objects through the tables. A dump lists each as a reference from the object
//! for which it is kept. The verifier follows such a reference from an object that it has reached.

use super::array::Array;

#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) by: *mut u8,
    /// The guardian's object, or null if `by` alone keeps the object.
    pub(super) and: *mut u8,
    pub(super) object: *mut u8,
}

/// All kept objects of a heap, ordered by the addresses of the objects for which they are kept.
pub(super) struct AllKept(Array<Kept>);

impl AllKept {
    /// Collects the objects that `each` reports. `None` without memory.
    pub(super) fn of(each: impl FnOnce(&mut dyn FnMut(Kept))) -> Option<Self> {
        let mut all = Self(Array::new());
        let mut whole = true;
        each(&mut |kept| whole &= kept.by == kept.object || all.0.push(kept));
        all.0.sort_unstable_by_key(|kept| kept.by.addr());
        whole.then_some(all)
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(Kept) -> bool) {
        self.0.retain(keep);
    }

    pub(super) fn by(&self, object: *mut u8) -> &[Kept] {
        let from = self.0.partition_point(|kept| kept.by.addr() < object.addr());
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|kept| kept.by.addr() <= object.addr())]
    }
}

impl Drop for AllKept {
    fn drop(&mut self) {
        self.0.end();
    }
}
