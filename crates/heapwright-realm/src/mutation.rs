//! A realm's root, and the operations of one mutation.

use core::marker::PhantomData;

use heapwright_gc::raw;

use super::trace::Trace;

/// The root of a realm: a type for each lifetime. `heapwright::Rootable!` makes it.
pub trait Rootable<'gc> {
    /// The root's type, if references live for `'gc`.
    type Root: Trace + 'gc;
}

/// A call of [`Realm::mutate`](super::Realm::mutate): it allocates, and never collects. Every
/// [`Gc`](super::Gc) with its lifetime leads to a live object until the call returns.
///
/// Every method that allocates panics if there is no memory, except [`Mutation::try_alloc`].
pub struct Mutation<'gc> {
    pub(super) mutator: *const raw::Mutator,
    /// Whether the realm may go to other threads. If so, some values are refused.
    pub(super) sends: bool,
    pub(super) brand: PhantomData<fn(&'gc ()) -> &'gc ()>,
}

/// Operations between two checks of the allocated bytes.
const LOOK: usize = 64;
const PIECE: usize = 128 << 10;

/// The operations that a piece of work may still do: see [`Realm::run`](super::Realm::run).
pub struct Fuel {
    mutator: *const raw::Mutator,
    left: usize,
}

impl Fuel {
    /// Uses fuel for one operation. Returns whether there was fuel. Without fuel the piece is over,
    /// and the function passed to [`Realm::run`](super::Realm::run) returns `None`. The realm calls
    /// the function again, after a collection if one is due.
    ///
    /// Fuel lasts for the operations that `run` was given, or until about 128 KiB are allocated.
    #[inline]
    pub fn burn(&mut self) -> bool {
        if self.left == 0 || self.left.is_multiple_of(LOOK) && self.is_spent() {
            return false;
        }
        self.left -= 1;
        true
    }

    #[cold]
    fn is_spent(&self) -> bool {
        // SAFETY: the realm's mutator, which outlives the piece.
        unsafe { &*self.mutator }.unpaid() >= PIECE
    }
}

impl Mutation<'_> {
    /// Returns fuel for `operations` operations of this mutation, or for one if that is 0.
    pub(super) fn fuel(&self, operations: usize) -> Fuel {
        Fuel { mutator: self.mutator, left: operations.max(1) }
    }
}
