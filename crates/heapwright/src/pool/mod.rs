//! Pools: the fastest way to make many things of one kind.
//!
//! ```text
//!   Pool<T>         objects of a type: owning handles, raw pointers, keys
//!   SharedPool<T>   the same for many threads
//!   RawPool         slots whose size is known when the program runs
//!        |
//!     front         128 free slots: destroyed last, handed out first
//!     store         fresh slots in a row; returned ones in sets of bits
//!     segments      runs of units that double, found from any address
//! ```
//!
//! A pool knows the size beforehand, so it has no classes, no headers and
//! no checks: an object is a slot, made by taking the slot that was destroyed
//! last, or the next of an untouched row. Pointers are stable;
//! pointer and index lead to each other by arithmetic; whether an address is in
//! the pool is one lookup in the address map, like every such question.
//!
//! What is known of free slots lies apart from them, so free pages can go back to
//! the kernel ([`Pool::trim`]), a reset may drop what is live, live objects can be
//! walked in order of their addresses, and a pool's destroyed objects are not
//! written to.
//!
//! After Zig's `MemoryPool` and what its users asked of it: address space taken
//! in doubling steps, free lists beside the objects, bases that differ, no
//! redundant node.
//!
//! ```
//! use heapwright::pool::{Pool, Reset};
//!
//! struct Node { value: u64, next: Option<core::ptr::NonNull<Node>> }
//!
//! let mut nodes: Pool<Node> = Pool::new();
//! let mut owned = nodes.boxed(Node { value: 1, next: None });
//! owned.value += 1;
//! assert_eq!(owned.value, 2);
//! drop(owned);                              // the slot is free again
//!
//! let key = nodes.insert(Node { value: 7, next: None });
//! assert_eq!(nodes.get(key).unwrap().value, 7);
//! nodes.reset(Reset::RetainCapacity);       // drops what is live, keeps the memory
//! assert!(nodes.get(key).is_none());        // the key is stale, and known to be
//! ```

mod checked;
mod fork;
mod front;
mod handle;
mod keyed;
mod layout;
mod raw;
mod returned;
mod segment;
mod shared;
mod store;
mod typed;

pub use crate::refused::Refused;
pub use keyed::Key;
pub use raw::{RawBuilder, RawPool};
pub use shared::{SharedBoxed, SharedBuilder, SharedPool};
pub use typed::{Boxed, Builder, IterMut, Pool};

/// How much memory a reset keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// None.
    FreeAll,
    /// All.
    RetainCapacity,
    /// That of so many slots; what lies behind them goes back.
    RetainUpTo(usize),
}

/// What there is of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Objects in use.
    pub live: usize,
    /// Objects there is memory for.
    pub capacity: usize,
    /// Bytes from one object to the next.
    pub slot_size: usize,
    /// Runs of memory they lie in.
    pub segments: usize,
    /// Bytes of address space of these runs. Memory that was never used, or was
    /// trimmed, is not resident.
    pub reserved_bytes: usize,
}

/// What can be chosen of every pool.
macro_rules! builder_choices {
    ($builder:ident $(< $parameter:ident >)?) => {
        impl $(<$parameter>)? $builder $(<$parameter>)? {
            /// The name that lines about misuse call the pool by.
            #[must_use]
            pub const fn name(mut self, name: &'static str) -> Self {
                self.config.called = super::store::Called::Name(name);
                self
            }

            /// The most objects there may be at a time. Address space for them is
            /// then reserved in one piece, if it can be had.
            #[must_use]
            pub const fn limit(mut self, objects: u32) -> Self {
                self.config.limit = objects;
                self
            }

            /// Asks for huge pages (of 2 MiB) behind all segments that are as large, or
            /// for none. Unless it is said here, pools of objects of up to 1 KiB have
            /// them from 4 MiB on, where new ones will be filled: faster to touch, to
            /// walk, and to use at random. After a trim a segment has none.
            #[must_use]
            pub const fn huge_pages(mut self, want: bool) -> Self {
                self.config.huge = Some(want);
                self
            }
        }
    };
}
use builder_choices;
use handle::handle_impls;

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
