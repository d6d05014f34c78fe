//! Pools in a fork, which holds the locks of names, of shared pools and of shared magazines.
//!
//! A pool of one thread is intact in the child if the forking thread used it. Otherwise the child
//! must not use it. In a child, the indexes of other threads stay taken. So the free slots in these
//! threads' magazines of a shared pool are lost until the pool is walked, reset or dropped. Shared
//! magazines lose no slot, because a fork holds their locks.

use super::shared;
use crate::fork::{self, Handlers, Part};
use crate::names;
use crate::sync::atomic::{AtomicBool, Ordering};

static HANDLERS: Handlers = Handlers { before, unlock, in_child };

/// Whether this process was forked from a process with several threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Returns whether magazines of other threads may be copies of different moments.
pub(super) fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn in_child(alone: bool) {
    FORKED.fetch_or(!alone, Ordering::Relaxed);
    shared::forget_after_fork();
}

pub(super) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if !JOINED.load(Ordering::Acquire) {
        fork::join(Part::Pools, &HANDLERS);
        // This is set last, so that a child that is forked before this line registers by itself.
        JOINED.store(true, Ordering::Release);
    }
}

fn before() {
    // A shared pool takes a name while it holds its own lock, so this lock comes first.
    shared::before_fork();
    names::before_fork();
}

/// Releases the locks.
///
/// # Safety
///
/// The call follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { names::after_fork() };
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { shared::after_fork() };
}
