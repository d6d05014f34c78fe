//! The pools' part in a fork: the locks of names and of pools that threads share.
//!
//! A pool of one thread is whole in the child if it is that thread's; else nobody
//! there may use it. Of a shared pool, what was free in other threads' magazines is
//! lost to the child, once: their desks stay taken.

use super::shared;
use crate::fork::{self, Handlers, Part};
use crate::names;
use crate::sync::atomic::{AtomicBool, Ordering};

static HANDLERS: Handlers = Handlers { before, unlock, in_child: |_| {} };

/// Takes part from now on.
pub(super) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if !JOINED.swap(true, Ordering::AcqRel) {
        fork::join(Part::Pools, &HANDLERS);
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
    // SAFETY: the same contract.
    unsafe { names::after_fork() };
    // SAFETY: as above.
    unsafe { shared::after_fork() };
}
