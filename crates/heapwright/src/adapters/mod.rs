//! Rust interfaces to the heap.
//!
//! [`Heapwright`] implements `GlobalAlloc`, and the versions of the `Allocator` trait. Each version
//! has a feature. All versions use the implementation in `allocator`.

mod global_alloc;
#[cfg(feature = "std")]
pub mod testing;

#[cfg(feature = "allocator-api2-02")]
mod allocator_api2_02;
#[cfg(feature = "allocator-api2-03")]
mod allocator_api2_03;
#[cfg(feature = "allocator-api2-04")]
mod allocator_api2_04;
#[cfg(feature = "nightly")]
mod nightly;

#[cfg(any(
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04",
    feature = "nightly"
))]
mod allocator;

/// The process's heap, as a Rust allocator.
///
/// ```
/// #[global_allocator]
/// static HEAP: heapwright::Heapwright = heapwright::Heapwright;
///
/// let squares: Vec<u64> = (0..1000).map(|n| n * n).collect();
/// assert!(heapwright::heap::owns(squares.as_ptr().cast()));
/// ```
///
/// With the feature `allocator-api2-02` (or `-03`, `-04`, or `nightly`) `Heapwright` serves single
/// collections:
///
/// ```
/// # #[cfg(feature = "allocator-api2-02")] {
/// use allocator_api2_02::vec::Vec;
/// let mut few = Vec::new_in(heapwright::Heapwright);
/// few.extend([1, 2, 3]);
/// assert!(heapwright::heap::owns(few.as_ptr().cast()));
/// # }
/// ```
///
/// If heapwright is preloaded, all calls go to the preloaded copy. The process then has one heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Heapwright;
