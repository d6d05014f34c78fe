//! What is kept and no object leads to: by guardians, and as contexts of finalizers.
//!
//! ```text
//!   retrievable     the guardian's object --> what it retrieves             as long as the guardian lives
//!   registered      the object            --> its representative            as long as it lives, and the guardian
//!   finalizer       the object            --> its context                   as long as it lives
//! ```
//!
//! No object holds these references, and marking finds them where they are registered. For whoever
//! looks at a heap they are references like others: a dump says them with the object that they keep
//! something for, and the verifier follows them when that object was reached. (What is due is a
//! root.)
//!
//! Called by `dump` and `verify`, while the world is stopped.

use super::array::Array;

/// As long as both objects live, another one does.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) by: *mut u8,
    /// The guardian's object; null: that does not matter.
    pub(super) and: *mut u8,
    pub(super) object: *mut u8,
}

/// All of a heap, by the addresses of those that they are kept by.
pub(super) struct AllKept(Array<Kept>);

impl AllKept {
    /// What `each` calls its argument for. `None` where there is no memory.
    pub(super) fn of(each: impl FnOnce(&mut dyn FnMut(Kept))) -> Option<Self> {
        let mut all = Self(Array::new());
        let mut whole = true;
        each(&mut |kept| whole &= kept.by == kept.object || all.0.push(kept));
        all.0.sort_unstable_by_key(|kept| kept.by.addr());
        whole.then_some(all)
    }

    /// Keeps those of which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl FnMut(Kept) -> bool) {
        self.0.retain(keep);
    }

    /// What is kept for one object.
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
