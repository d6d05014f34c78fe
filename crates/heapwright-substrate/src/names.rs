//! Names of pools, by the id in the entries of a pool's segments.
//!
//! ```text
//!   entry --owner--> id --> Name { "Node" }      made once, then recycled
//! ```
//!
//! A pool takes an id before its first segment, and gives the id back at its end. The name is not
//! in the pool, because a function that finds a misplaced pointer has only an address.
//!
//! The bytes are atomics. If the id goes to another pool during a read, a line may mix two names.
//! Called by `pool`. `misuse` and `debug` read names.

use crate::ids::{Recycled, Slot};
use crate::sync::atomic::{AtomicU8, Ordering};

/// The longest name in bytes. Longer names are cut.
const LONGEST: usize = 47;

/// The name of an id.
pub struct Name {
    length: AtomicU8,
    bytes: [AtomicU8; LONGEST],
}

static NAMES: Recycled<Name> = Recycled::new();

impl Name {
    /// Takes a vacant id and sets its name. `None`: there is no memory.
    pub fn take(name: &str) -> Option<&'static Slot<Self>> {
        let bytes = [const { AtomicU8::new(0) }; LONGEST];
        let found = NAMES.take(Self { length: AtomicU8::new(0), bytes })?;
        for (at, byte) in found.value.bytes.iter().zip(name.bytes()) {
            at.store(byte, Ordering::Relaxed);
        }
        found.value.length.store(name.len().min(LONGEST) as u8, Ordering::Relaxed);
        Some(found)
    }

    /// Gives an id back. No entry of the map may have this id any more.
    pub fn give(slot: &'static Slot<Self>) {
        NAMES.give(slot);
    }

    /// Calls `with` with the name of `id`.
    pub fn of<R>(id: u32, with: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = [0; LONGEST];
        let mut length = 0;
        if let Some(name) = NAMES.get(id) {
            length = name.length.load(Ordering::Relaxed) as usize;
            for (to, from) in bytes.iter_mut().zip(&name.bytes) {
                *to = from.load(Ordering::Relaxed);
            }
        }
        with(&bytes[..length.min(LONGEST)])
    }
}

/// Holds the lock across a fork.
pub fn before_fork() {
    NAMES.before_fork();
}

/// Releases the lock on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub unsafe fn after_fork() {
    // SAFETY: this thread (in a child: its original) took the locks before the fork.
    unsafe { NAMES.after_fork() };
}
