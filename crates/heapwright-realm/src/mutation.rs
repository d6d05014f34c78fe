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
pub struct Mutation<'gc> {
    pub(super) mutator: *const raw::Mutator,
    /// Whether the realm may go to other threads. If so, some values are refused.
    pub(super) sends: bool,
    pub(super) brand: PhantomData<fn(&'gc ()) -> &'gc ()>,
}
