//! The public names of the collected heap: garbage collection for Rust programs and runtimes.
//!
//! ```text
//!   mutator  regions to bump through, each for a pool and kind      allocation: no lock, no list
//!      |
//!   page     pages in use and empty pages, by pool and kind         lazy sweeping, growth by pool
//!   lists
//!      |
//!   pages    64 KiB or more of equal slots, bitmaps beside      nothing of ours in an object
//! ```
//!
//! - [`Realm`]: the safe interface for Rust, with [`Gc`], [`Weak`], [`Slice`] and
//!   `#[derive(Trace)]` (feature `derive`)
//! - collections of realms ([`Vector`], [`Deque`], [`Map`], [`Set`], [`StrBuilder`]), and
//!   finalizers ([`Finalize`])
//! - [`SendRealm`], which can move between threads
//! - [`raw`]: the interface for runtimes, and the base of the C interface (`heapwright_gc.h`)
//!
//! The idea is Ruby's Variable Width Allocation (Feature #18045, Peter Zhu, Matt Valentine-House,
//! Aaron Patterson). Ruby's later work gave the ideas of empty pages, growth by pool, and stable
//! heaps. Incremental marking follows Dijkstra. Sparse pages are evacuated a few at a time.

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
