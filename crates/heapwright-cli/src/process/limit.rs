//! A limit of a program's run time.
//!
//! ```text
//! child ...............................|   dead, its pid still taken
//!   we      wait ......................+-> tell the other thread, which ends
//!   thread  sleep ............| kill it and all that it started
//! ```
//!
//! The child is reaped after the thread has ended, so the thread's signal reaches no other process.

use super::orphans;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Waits for the child, and kills this process's descendants at `limit`. Returns whether it killed.
pub(super) fn within(limit: Duration, wait: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    let (child_ended, ended) = mpsc::channel::<()>();
    let watcher = thread::spawn(move || {
        let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if is_late {
            orphans::kill_all();
        }
        is_late
    });
    let waited = wait();
    drop(child_ended);
    let is_late = watcher.join().unwrap_or_default();
    waited.map(|()| is_late)
}
