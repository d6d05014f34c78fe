//! Arenas: bump allocation in chunks, freed all at once.
//!
//! ```text
//!   Arena         one thread; scopes, marks, an allocator for collections
//!   DropArena     the same, and drops its values
//!   SharedArena   many threads
//!       |
//!     bump        the start and end of a request (arithmetic)
//!     chunks      runs of units in a list, all kept by a reset
//! ```
//!
//! ```
//! use heapwright::arena::Arena;
//!
//! let mut arena = Arena::new();
//! let name = arena.alloc_str("slab");
//! let sizes = arena.alloc_slice_fill_with(4, |n| 16 << n);
//! assert_eq!((&*name, &*sizes), ("slab", &[16, 32, 64, 128][..]));
//! arena.reset();                                   // keeps the memory
//! arena.scope(|scope| {
//!     scope.alloc([0u8; 1000]);                    // gone when the scope ends
//! });
//! ```

mod bump;
mod chunks;
mod dropping;
mod local;
mod methods;
mod shared;

pub use crate::refused::Refused;
pub use dropping::DropArena;
pub use local::{Arena, Mark, Scope};
pub use shared::SharedArena;

#[cfg(test)]
mod tests;
