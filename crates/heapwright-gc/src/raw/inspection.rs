//! Inspection: walks, dumps and verification of a heap, and the size of any object.

use super::super::heap;
use super::Mutator;
use heapwright_substrate::address_map::MAP;

impl Mutator {
    /// Calls `visit` for each object (address, bytes of its slot, kind), until `visit` returns
    /// false. Returns whether all objects were visited. The world is stopped meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `visit` calls nothing of the heap.
    pub unsafe fn walk(&self, visit: impl FnMut(*mut u8, usize, u32) -> bool) -> bool {
        self.heap().walk(self.inner(), visit)
    }

    /// Writes a heap dump for `heapwright heap` to `sink`, piece by piece. `sink` returns whether
    /// it took the piece. Returns whether the dump is whole. The world is stopped meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super); `sink` calls nothing of the heap.
    pub unsafe fn dump(&self, sink: impl FnMut(&[u8]) -> bool) -> bool {
        self.heap().dump(self.inner(), sink)
    }

    /// Returns whether an object is old. A minor collection takes an old object for live, and
    /// traces it only after a store into it. For most objects the call takes constant time. For an
    /// object that survived one collection or was stored into, the call stops the world. It then
    /// takes time linear in the number of such objects.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super): the call is a safepoint.
    #[must_use]
    pub unsafe fn is_old(&self, object: *mut u8) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().is_old(self.inner(), object)
    }

    /// Returns whether a pin in the object's page keeps the object in place.
    #[must_use]
    pub fn is_pinned(&self, object: *mut u8) -> bool {
        self.heap().space.is_pinned(object)
    }

    /// Returns the new address of an object that moved away from `address`. The answer is valid
    /// until the heap is swept after the move.
    #[must_use]
    pub fn moved(&self, address: *mut u8) -> Option<*mut u8> {
        self.heap().space.forwarded(address)
    }

    /// Verifies every reachable object, and prints what is wrong. Returns the number of errors.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    pub unsafe fn verify(&self) -> usize {
        self.heap().verify_now(self.inner())
    }
}

/// Returns the bytes of an object's slot, for any address in the first unit of a collected heap's
/// page. Returns 0 for all other addresses.
#[must_use]
pub fn object_size(object: *const u8) -> usize {
    let owner = MAP.lookup(object.addr()).1.owner();
    heap::of(owner).map_or(0, |heap| heap.space.size_of(object))
}
