//! Names: who a pool is, by the id in its segments' entries.
//!
//! ```text
//!   entry --owner--> id --> Name { "Node" }      made once, then recycled
//! ```
//!
//! A pool gets an id with its first segment and gives it back with its last.
//! The name is kept here, and not in the pool, because whoever finds a pointer
//! in the wrong place has an address and nothing else.
//!
//! Bytes are atomics: a line about one pool's pointer may be written while the
//! id becomes another pool's. The line may then be of two names; nothing worse.
//!
//! Called by `pool`; read by `misuse`.

use core::ptr;

use crate::ids::Ids;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Bytes of a name that are kept.
const LONGEST: usize = 47;

/// The name that goes with an id.
pub(crate) struct Name {
    id: u32,
    /// The next one that nobody has.
    vacant: AtomicPtr<Name>,
    length: AtomicU8,
    bytes: [AtomicU8; LONGEST],
}

struct Vacant(*mut Name);

// SAFETY: leads to names, which any thread may reach and nobody frees.
unsafe impl Send for Vacant {}

static NAMES: Ids<Name> = Ids::new();
static VACANT: Lock<Vacant> = Lock::new(Vacant(ptr::null_mut()));

impl Name {
    /// An id that nobody has, with a name. `None` where there is no memory.
    pub(crate) fn take(name: &str) -> Option<&'static Self> {
        let mut vacant = VACANT.lock();
        // SAFETY: null, or a name, which is never freed.
        let found = match unsafe { vacant.0.as_ref() } {
            Some(found) => {
                vacant.0 = found.vacant.load(Ordering::Relaxed);
                found
            }
            None => {
                let bytes = [const { AtomicU8::new(0) }; LONGEST];
                let vacant = AtomicPtr::new(ptr::null_mut());
                // SAFETY: memory for one name, which nobody else knows.
                let make = |at: *mut Self, id| unsafe {
                    at.write(Self { id, vacant, length: AtomicU8::new(0), bytes });
                };
                // SAFETY: the lock is held, and `make` makes a name.
                unsafe { NAMES.make(make) }?
            }
        };
        drop(vacant);
        let kept = name.len().min(LONGEST);
        for (at, byte) in found.bytes.iter().zip(name.bytes()) {
            at.store(byte, Ordering::Relaxed);
        }
        found.length.store(kept as u8, Ordering::Relaxed);
        Some(found)
    }

    /// Gives the id back. No entry of the map has it any more.
    pub(crate) fn give(&'static self) {
        let mut vacant = VACANT.lock();
        self.vacant.store(vacant.0, Ordering::Relaxed);
        vacant.0 = ptr::from_ref(self).cast_mut();
    }

    /// The id.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Calls `with` with the name that goes with `id`.
    pub(crate) fn of<R>(id: u32, with: impl FnOnce(&[u8]) -> R) -> R {
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
pub(crate) fn before_fork() {
    VACANT.acquire();
}

/// Gives the lock back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(crate) unsafe fn after_fork() {
    // SAFETY: by the contract this thread (or the one it is a copy of) holds it.
    unsafe { VACANT.release() };
}
