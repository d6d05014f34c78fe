//! The pools' part in a fork: the locks of names, of shared pools and of shared magazines.
//!
//! A pool of one thread is intact in the child if it is the forking thread's; otherwise the child
//! must not use it. The child loses the free slots in other threads' magazines of a shared pool
//! once, because their thread indices stay taken. A child that walks, resets or drops the pool gets
//! them back. Shared magazines lose nothing, because a fork holds their locks.

use super::shared;
use crate::fork::{self, Handlers, Part};
use crate::names;
use crate::sync::atomic::{AtomicBool, Ordering};

static HANDLERS: Handlers = Handlers { before, unlock, in_child };

/// Whether this process is the child of one with several threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Returns whether magazines of other threads may be copies of different moments.
pub(super) fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn in_child(alone: bool) {
    FORKED.fetch_or(!alone, Ordering::Relaxed);
    shared::forget_after_fork();
}

/// Registers the handlers for forks.
pub(super) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if !JOINED.load(Ordering::Acquire) {
        fork::join(Part::Pools, &HANDLERS);
        // Set last: the child of a fork in between registers by itself.
        JOINED.store(true, Ordering::Release);
    }
}

fn before() {
    // A shared pool takes a name while it holds its own lock, so this lock comes first.
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
