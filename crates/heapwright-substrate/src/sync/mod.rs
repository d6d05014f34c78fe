//! Synchronisation: the one source of atomics and locks.
//!
//! Under `--cfg loom` the lock-free parts run on loom's model of memory. [`Lock`] is a three-state
//! futex mutex (Drepper, "Futexes are tricky", mutex 3). Unlike the locks of `std`, it does not
//! poison. Unlike those of `parking_lot`, it does not allocate.
//!
//! ```text
//! state: 0 free --lock--> 1 held --another waits--> 2 held, waiters
//! ```

#[cfg(not(loom))]
pub use core::sync::atomic;
#[cfg(loom)]
pub use loom::sync::atomic;

#[cfg(not(loom))]
mod lock;
#[cfg(loom)]
mod modelled;
mod owner_lock;
#[cfg(not(loom))]
pub use lock::{Guard, Lock, hold_all, hold_all_no_more, holds_all, is_interrupted};
#[cfg(loom)]
pub use modelled::{Guard, Lock, futex_wait, futex_wake_all};
#[cfg(not(loom))]
pub use owner_lock::{OwnerLock, Owning, QuickOwning, Visit, prepare as prepare_owner_locks};

/// Subtracts one from a count, with relaxed order. Returns the count before. `None`: none is left.
#[inline]
pub fn take_one(left: &atomic::AtomicU32) -> Option<u32> {
    use atomic::Ordering::Relaxed;
    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok()
}
