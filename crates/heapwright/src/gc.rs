//! The collected heap: memory that is found to be free.
//!
//! ```text
//!   mutator  regions to bump through, one a pool and kind       allocation: no lock, no list
//!      |
//!   page     pages by pool and kind; those in use and the       lazy sweeping, growth a pool
//!   lists    empty ones
//!      |
//!   pages    64 KiB of equal slots, bitmaps beside              nothing of ours in an object
//! ```
//!
//! - [`Realm`]: the safe interface for Rust, with [`Gc`], [`Weak`], [`Slice`] and
//!   `#[derive(Trace)]` (feature `derive`); collections of its own ([`Vector`], [`Deque`], [`Map`],
//!   [`Set`], [`StrBuilder`]); finalizers ([`Finalize`]); [`SendRealm`], which goes from thread to
//!   thread
//! - [`raw`]: the interface for runtimes; the C interface (`heapwright_gc.h`) is made of it
//!
//! After Ruby's Variable Width Allocation (Feature #18045, Peter Zhu, Matt Valentine-House,
//! Aaron Patterson) and what Ruby learned since; incremental marking after Dijkstra; empty pages,
//! per-pool growth and stable heaps as there; sparse pages are evacuated a few at a time.

#[doc(inline)]
pub use heapwright_gc::*;
#[doc(inline)]
pub use heapwright_realm::*;

/// Names the root of a realm: `Rootable!['gc => Root<'gc>]`.
///
/// ```
/// use heapwright::Rootable;
/// use heapwright::gc::{Gc, Realm};
///
/// type Numbers = Realm<Rootable!['gc => Gc<'gc, u32>]>;
/// let mut numbers = Numbers::new(|mc| mc.alloc(7));
/// assert_eq!(numbers.mutate(|_, root| **root), 7);
/// ```
#[macro_export]
macro_rules! Rootable {
    ($gc:lifetime => $root:ty) => {
        dyn for<$gc> $crate::gc::Rootable<$gc, Root = $root>
    };
}
