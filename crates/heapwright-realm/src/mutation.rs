//! What a realm's root is, and what may be done with it for as long as one call lasts.

use core::marker::PhantomData;

use heapwright_gc::raw;

use super::trace::Trace;

/// A type for each lifetime: what a realm's root is. Made by `heapwright::Rootable!`.
pub trait Rootable<'gc> {
    /// The root, if references live as long.
    type Root: Trace + 'gc;
}

/// What may be done in a [`Realm::mutate`](super::Realm::mutate).
pub struct Mutation<'gc> {
    pub(super) mutator: *const raw::Mutator,
    /// Whether the realm goes to other threads, so that not all values may be put into it.
    pub(super) sends: bool,
    pub(super) brand: PhantomData<fn(&'gc ()) -> &'gc ()>,
}
