//! Pools: the fastest way to make many objects of one kind.
//!
//! ```text
//!   Pool<T>         objects of a type: owning handles, raw pointers, keys
//!   SharedPool<T>   the same for many threads
//!   KeyPool<T>      keys alone: a slot map          SecondaryMap<K, V>   values by its keys
//!   RawPool         slots whose size is known only at run time
//!        |
//!     front         128 free slots: freed last, handed out first
//!     store         fresh slots in a row; returned slots in sets of bits
//!     segments      runs of units, each twice as long as the last, found from any address
//!     keys          the slots of keyed objects, with generations and live bits
//! ```
//!
//! A pool knows the object size beforehand, so it has no size classes, and objects without keys
//! have no headers. A new object takes the slot that was freed last, or the next untouched slot.
//! Pointers are stable. One lookup in the address map tells whether an address is in the pool.
//!
//! Metadata of free slots lies apart from the slots. Nothing writes to free slots, except checked
//! builds and generations of keys. So free pages can go back to the kernel ([`Pool::trim`]), a
//! reset can drop live objects, and a walk visits live objects in address order.
//!
//! The idea is that of Zig's `MemoryPool`.
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
//! assert!(nodes.get(key).is_none());        // the key is stale
//! ```

mod checked;
mod fork;
mod front;
mod handle;
mod keyed;
mod keys;
mod layout;
mod raw;
mod returned;
mod segment;
mod shared;
mod store;
mod typed;

pub use crate::refused::Refused;
#[doc(hidden)]
pub use handle::__into_parts;
pub use handle::coerce;
pub use keyed::Iter as PoolIter;
pub use keys::{
    Drain, IntoIter, Iter, IterMut, Key, KeyBuilder, KeyPool, PoolKey, RawKey, SecondaryMap,
    key_type,
};
pub use raw::{RawBuilder, RawPool};
pub use shared::{SharedBoxed, SharedBuilder, SharedPool, SharedRef};
pub use typed::{Boxed, Builder, Pool};

/// The memory that a reset keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Keeps no memory.
    FreeAll,
    /// Keeps all memory.
    RetainCapacity,
    /// Keeps the memory of this many slots and releases the rest.
    RetainUpTo(usize),
}

/// Statistics of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Objects in use.
    pub live: usize,
    /// Objects that the pool has memory for.
    pub capacity: usize,
    /// Bytes from one object to the next.
    pub slot_size: usize,
    /// The number of segments.
    pub segments: usize,
    /// Bytes of address space of the segments. Unused and trimmed memory is not resident.
    pub reserved_bytes: usize,
}

macro_rules! builder_choices {
    ($builder:ident $(< $parameter:ident >)?) => {
        impl $(<$parameter>)? $builder $(<$parameter>)? {
            /// Sets the pool's name in reports of misuse.
            #[must_use]
            pub const fn name(mut self, name: &'static str) -> Self {
                self.config.called = super::store::Called::Name(name);
                self
            }

            /// Sets the largest number of live objects. In a `Pool`, objects with keys and objects
            /// without keys have this limit each. If possible, a `Pool` or `RawPool` reserves
            /// address space for all objects without keys in one piece.
            #[must_use]
            pub const fn limit(mut self, objects: u32) -> Self {
                self.config.limit = objects;
                self
            }

            /// Sets whether segments of 2 MiB or more use huge pages, which are faster to touch, to
            /// walk and to access at random. By default, a pool of objects up to 1 KiB uses huge
            /// pages for new segments once it has 4 MiB of slots. A trimmed segment has none.
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
