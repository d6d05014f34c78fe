//! Collections that lie in a realm, so that nothing there needs a `Box`, a `Vec` or a map of std's.
//!
//! ```text
//!   Vector, Deque   Gc --> | buffer |           Buffer --> | header | capacity | ... | T | T | T | ...
//!   Map, Set        Gc --> | entries | index | live | hasher |
//!                               |        +--> Slice of words: 31 bits of hash, number of the entry
//!                               +--> Buffer of Option<(K, V)>, in the order of insertion
//! ```
//!
//! Each is one word, copied freely, and shared by all that have a copy, as a
//! [`Gc`](super::pointer::Gc) is. They change in place by methods that are given the
//! [`Mutation`](super::Mutation), and report what they store: the caller names no parent object.
//! Values are `Copy` (a `Gc`, a `Str`, a number, a tuple of such) and are copied in and out, never
//! lent; so any method may be called at any time, while one iterates, too. What is not `Copy` is
//! put into the realm by itself: a collection of `Gc<T>`.
//!
//! All of their memory is the realm's: it counts for its limit and paces its collections, is moved
//! and compacted, and is traced as far as there are values. Storage that was outgrown is garbage.
//!
//! No file here has unsafe code but `traced`, for `Trace`: what needs more is in `buffer`.

pub(crate) mod deque;
pub(crate) mod hash;
pub(crate) mod map;
mod sequence;
pub(crate) mod set;
#[cfg(test)]
mod tests;
mod traced;
pub(crate) mod vector;
