//! The lock of the C library's list of streams, which a fork takes before any lock of the heap.
//!
//! ```text
//!   getline        stream -> heap             (the buffer grows while the stream is locked)
//!   fflush(NULL)   list -> stream
//!   fork, glibc    list -> heap               glibc's own order: the list before its malloc
//!   fork, others   heap -> list               a prefork handler runs before glibc takes the list:
//!                                             with the first two lines a cycle, and a deadlock
//! ```
//!
//! So the prefork handler takes the list's lock first. The lock is recursive and belongs to a
//! thread, so glibc can take it again. In the child, glibc resets the lock before any handler runs.
//! So the child must not release the lock, but may reset it again. With other C libraries these
//! functions do nothing: there is no such lock, or a fork does not take it (musl).

use super::symbols::weak;

/// Takes the lock. Waits for threads that flush all streams. Such a thread may wait for a stream
/// whose holder waits for the heap. So the caller must hold no lock that malloc takes.
pub fn lock_streams() {
    call(weak!("_IO_list_lock"));
}

/// Releases the lock, in the thread that took it.
pub fn unlock_streams() {
    call(weak!("_IO_list_unlock"));
}

/// In a child that has just been forked: frees the lock, which any thread may have held.
pub fn reset_streams() {
    call(weak!("_IO_list_resetlock"));
}

fn call(function: *mut u8) {
    // SAFETY: glibc's three functions take nothing and return nothing; null is `None`.
    let function: Option<unsafe extern "C" fn()> = unsafe { core::mem::transmute(function) };
    if let Some(function) = function {
        // SAFETY: their only precondition is the order of calls that this file's functions state.
        super::keeping_errno(|| unsafe { function() });
    }
}
