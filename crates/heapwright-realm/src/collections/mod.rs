//! Collections that lie in a realm, so that no value there needs a `Box`, a `Vec` or a map of
//! std's.
//!
//! ```text
//!   Vector, Deque   Gc --> | buffer |   Buffer --> | header | capacity | ... | T | T | T | ...
//!   Map, Set        Gc --> | entries | index | live | hasher |
//!                               |        +--> Slice of words: 31 bits of hash, number of the entry
//!                               +--> Buffer of Option<(K, V)>, in the order of insertion
//! ```
//!
//! Each collection is one word and `Copy`. All copies share the contents, as with a
//! [`Gc`](super::pointer::Gc). Methods that take the [`Mutation`](super::Mutation) change the
//! contents in place and report their stores. Values are `Copy` (a `Gc`, a `Str`, a number, a tuple
//! of these) and are copied in and out, never lent. So any method may be called at any time, even
//! during an iteration. Other values go in as `Gc<T>`.
//!
//! The realm owns the memory of its collections, counts it for its limit, and moves it. Only values
//! are traced. Replaced storage is garbage.

pub(crate) mod deque;
pub(crate) mod hash;
pub(crate) mod map;
mod sequence;
pub(crate) mod set;
#[cfg(test)]
mod tests;
mod traced;
pub(crate) mod vector;
