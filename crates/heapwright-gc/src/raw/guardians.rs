//! Guardians: making them, registering objects, retrieving them.

use super::Mutator;

impl Mutator {
    /// Makes an object a guardian, and returns its number. A program registers objects with the
    /// guardian. While the guardian is reachable, the program retrieves objects that are otherwise
    /// unreachable. The number is invalid when the guardian has died. `None` if there is no memory.
    ///
    /// # Safety
    ///
    /// `object` is an object of this heap.
    pub unsafe fn new_guardian(&self, object: *mut u8) -> Option<u32> {
        let number = self.heap().trace.guardians.make(object);
        self.inner().keep_this_time([object]);
        number
    }

    /// Registers an object with a guardian. When the object is unreachable, `representative` can be
    /// retrieved: the object itself, or another object. Until then the heap keeps the
    /// representative like the value of an ephemeron whose key is the object. Returns false if
    /// there is no memory, or no such guardian.
    ///
    /// # Safety
    ///
    /// `object` and `representative` are objects of this heap. `guardian` is of
    /// [`Mutator::new_guardian`], and its object lives.
    pub unsafe fn guard(&self, guardian: u32, object: *mut u8, representative: *mut u8) -> bool {
        let registered = self.heap().trace.guardians.register(guardian, object, representative);
        self.inner().keep_this_time([object, representative]);
        registered
    }

    /// Returns the next object that a guardian retrieves, in the order in which collections found
    /// the objects inaccessible. Takes constant time. The caller keeps the object alive.
    ///
    /// # Safety
    ///
    /// `guardian` is of [`Mutator::new_guardian`], and its object lives.
    #[must_use]
    pub unsafe fn retrieve(&self, guardian: u32) -> Option<*mut u8> {
        self.heap().trace.guardians.take(guardian)
    }
}
