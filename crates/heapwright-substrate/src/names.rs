//! Names of pools, by the id in its segments' entries.
//!
//! ```text
//!   entry --owner--> id --> Name { "Node" }      made once, then recycled
//! ```
//!
//! A pool gets an id with its first segment and gives it back with its last.
//! The name is kept here, and not in the pool, because a function that finds a pointer
//! in the wrong place has an address and nothing else.
//!
//! Bytes are atomics: a line about one pool's pointer may be written while the
//! id becomes another pool's. The line may then be of two names; nothing worse.
//!
//! Called by `pool`; read by `misuse`.

use crate::ids::{Recycled, Slot};
use crate::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a name that are kept.
const LONGEST: usize = 47;

/// The name that goes with an id.
pub struct Name {
    length: AtomicU8,
    bytes: [AtomicU8; LONGEST],
}

static NAMES: Recycled<Name> = Recycled::new();

impl Name {
    /// An unused id, with a name. `None` where there is no memory.
    pub fn take(name: &str) -> Option<&'static Slot<Self>> {
        let bytes = [const { AtomicU8::new(0) }; LONGEST];
        let found = NAMES.take(Self { length: AtomicU8::new(0), bytes })?;
        for (at, byte) in found.value.bytes.iter().zip(name.bytes()) {
            at.store(byte, Ordering::Relaxed);
        }
        found.value.length.store(name.len().min(LONGEST) as u8, Ordering::Relaxed);
        Some(found)
    }

    /// Gives an id back. No entry of the map has it any more.
    pub fn give(slot: &'static Slot<Self>) {
        NAMES.give(slot);
    }

    /// Calls `with` with the name that goes with `id`.
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

/// Gives the lock back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub unsafe fn after_fork() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { NAMES.after_fork() };
}
