//! Threads: what happens when one ends, and around a fork.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use super::super::{EXITS, Exit};
use super::keeping_errno;

/// `pthread_key_t + 1` each, or 0 before [`on_thread_exit`].
static EXIT_KEYS: [AtomicU32; EXITS] = [const { AtomicU32::new(0) }; EXITS];

/// Names the function that runs when a thread that called
/// [`watch_this_thread`] ends. Once a process and `exit`; false where the system
/// has no key left (then caches of ended threads are not reused).
///
/// A pthread key, not `thread_local!` with a destructor: registering the
/// latter allocates.
pub(crate) fn on_thread_exit(exit: Exit, run: unsafe extern "C" fn(*mut c_void)) -> bool {
    let mut key = 0;
    // SAFETY: `key` is a valid place for the answer; `run` takes what is set.
    let got = keeping_errno(|| unsafe { libc::pthread_key_create(&raw mut key, Some(run)) });
    if got == 0 {
        EXIT_KEYS[exit as usize].store(key + 1, Ordering::Release);
    }
    got == 0
}

/// Asks for the exit function to run with `token` (not null) when the calling
/// thread ends. False where there is none.
pub(crate) fn watch_this_thread(exit: Exit, token: *mut c_void) -> bool {
    let Some(key) = EXIT_KEYS[exit as usize].load(Ordering::Acquire).checked_sub(1) else {
        return false;
    };
    // SAFETY: the key was created above and is never deleted.
    keeping_errno(|| unsafe { libc::pthread_setspecific(key, token) }) == 0
}

/// What [`watch_this_thread`] was told last; null: nothing.
pub(crate) fn watched(exit: Exit) -> *mut c_void {
    match EXIT_KEYS[exit as usize].load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key was created above and is never deleted.
        Some(key) => unsafe { libc::pthread_getspecific(key) },
        None => core::ptr::null_mut(),
    }
}

/// A number that no other thread of the process has while this one lives. A
/// forked child's thread has its original's.
pub(crate) fn thread_token() -> usize {
    // SAFETY: no preconditions; the location is the thread's own.
    unsafe { libc::__errno_location() }.addr()
}

/// The system's number of the calling thread.
#[cfg(feature = "debug")]
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_gettid) }) as u32
}

/// Names the functions that run around every fork.
pub(crate) fn around_fork(
    before: unsafe extern "C" fn(),
    in_parent: unsafe extern "C" fn(),
    in_child: unsafe extern "C" fn(),
) {
    keeping_errno(|| {
        // SAFETY: the three functions live as long as the process.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) }
    });
}
