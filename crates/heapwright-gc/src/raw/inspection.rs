//! Inspection: walks, dumps and verification of a heap, and the size of any object.

use super::super::heap;
use super::Mutator;
use heapwright_substrate::address_map::MAP;

impl Mutator {
    /// Calls `visit` for each object: address, bytes of its slot, kind. Stops when it says
    /// false; whether it never did. The world stands still meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `visit` calls nothing of the heap.
    pub unsafe fn walk(&self, visit: impl FnMut(*mut u8, usize, u32) -> bool) -> bool {
        self.heap().walk(self.inner(), visit)
    }

    /// Writes a heap dump, which `heapwright heap` reads: `sink` is given its pieces, one after the
    /// other, and says whether it took them. Returns whether the dump is whole. The world stands
    /// still meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `sink` calls nothing of the heap.
    pub unsafe fn dump(&self, sink: impl FnMut(&[u8]) -> bool) -> bool {
        self.heap().dump(self.inner(), sink)
    }

    /// Returns whether an object is old: a minor collection takes it for live, and does not look at
    /// it unless something was stored into it. Constant time for most; the world stands still for
    /// an object that has survived one collection, or was stored into, and then it takes time for
    /// each object that was.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super): it is a safepoint.
    #[must_use]
    pub unsafe fn is_old(&self, object: *mut u8) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().is_old(self.inner(), object)
    }

    /// Returns whether an object does not move because it, or another in its page, is pinned.
    #[must_use]
    pub fn is_pinned(&self, object: *mut u8) -> bool {
        self.heap().space.is_pinned(object)
    }

    /// Where the object is now that was at `address`, if it has moved: until the collection that
    /// moved it has been swept. Later nobody knows.
    #[must_use]
    pub fn moved(&self, address: *mut u8) -> Option<*mut u8> {
        self.heap().space.forwarded(address)
    }

    /// Looks at every object that roots lead to, and says what is wrong. Returns how many things
    /// are.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    pub unsafe fn verify(&self) -> usize {
        self.heap().verify_now(self.inner())
    }
}

/// Bytes of the slot of an object of any collected heap; 0 for anything else.
#[must_use]
pub fn object_size(object: *const u8) -> usize {
    let owner = MAP.lookup(object.addr()).1.owner();
    heap::of(owner).map_or(0, |heap| heap.space.size_of(object))
}
