//! The pools' part in a fork: the locks of names, of pools that threads share, and of
//! their magazines where those are shared, too.
//!
//! A pool of one thread is whole in the child if it is that thread's; else it
//! must not be used there. Of a shared pool, what was free in other threads' magazines is lost
//! to the child, once: their thread indices stay taken. A child that walks, resets or drops a
//! pool takes it back, as far as it was copied whole. Where threads share magazines,
//! nothing is lost: a fork holds their locks.

use super::shared;
use crate::fork::{self, Handlers, Part};
use crate::names;
use crate::sync::atomic::{AtomicBool, Ordering};

static HANDLERS: Handlers = Handlers { before, unlock, in_child };

/// This process is the child of one with several threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether magazines of other threads may be copies of different moments.
pub(super) fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn in_child(alone: bool) {
    FORKED.fetch_or(!alone, Ordering::Relaxed);
    shared::forget_after_fork();
}

/// Takes part from now on.
pub(super) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if !JOINED.load(Ordering::Acquire) {
        fork::join(Part::Pools, &HANDLERS);
        // Afterwards, so that the child of a fork that came between joins by itself.
        JOINED.store(true, Ordering::Release);
    }
}

fn before() {
    // A shared pool takes a name while it holds its own lock.
    shared::before_fork();
    names::before_fork();
}

/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { names::after_fork() };
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { shared::after_fork() };
}
