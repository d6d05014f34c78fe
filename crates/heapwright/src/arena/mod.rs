//! Arenas: bump allocation in chunks, freed all at once.
//!
//! ```text
//!   Arena         one thread; scopes, marks, an allocator for collections
//!   DropArena     one thread; scopes; drops its values
//!   SharedArena   many threads; an allocator for collections
//!   ArenaBox, ArenaVec, ArenaString   own and drop their contents, in an arena of one thread
//!       |
//!     methods     the names of the allocating functions, for all arenas
//!     make        the functions: values, slices, strings in the memory of any arena
//!     buffer      a row of elements that grows
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

mod boxed;
mod buffer;
mod bump;
mod chunks;
mod dropping;
mod local;
pub(crate) mod make;
mod methods;
mod shared;
mod string;
mod vec;

pub use crate::refused::Refused;
pub use boxed::{ArenaBox, ArenaRef, coerce};
pub use dropping::{DropArena, DropScope};
pub use local::{Arena, Mark, Scope};
pub use shared::SharedArena;
pub use string::ArenaString;
pub use vec::{ArenaVec, IntoIter};

#[cfg(test)]
mod tests;
