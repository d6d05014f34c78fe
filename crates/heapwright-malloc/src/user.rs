//! `setuid` and its kin, by which root's process becomes another user, in libheapwright-check.so.
//!
//! Only root may write to the record that a process of root makes. These functions therefore give
//! the record to the new user, and make a folder for the records of that user's children
//! (`heapwright::files`). The folder also tells the command which users the run itself chose. A
//! process that becomes root again takes its record back.
//!
//! Without a record the functions only call the C library's. A child of `vfork` may call them all.

use crate::errno;
use crate::weak::next;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use heapwright::process;
use libc::{c_int, c_void, uid_t};

/// The user that the record was given to, or 0.
static GIVEN_TO: AtomicU32 = AtomicU32::new(0);

/// Makes a call that gives the process the effective user `user`, or keeps the user (-1).
fn becoming(user: uid_t, call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the call has no preconditions.
    let is_root = || unsafe { libc::geteuid() } == 0;
    let give = |from, to| {
        process::give_record(from, to);
        // A child of `vfork` has its parent's memory, but a record of its own.
        if process::is_original_process() {
            GIVEN_TO.store(to, Ordering::Relaxed);
        }
    };
    if user != 0 && user != uid_t::MAX && is_root() {
        give(0, user);
    }
    let result = call();
    let given_to = GIVEN_TO.load(Ordering::Relaxed);
    if given_to != 0 && is_root() {
        give(given_to, 0);
    }
    result
}

/// Makes functions that call the C library's. Each line names the new effective user's parameter.
macro_rules! users {
    ($($name:ident($($parameter:ident),*) -> $user:ident, $text:literal;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: uid_t),*) -> c_int {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let next = next(&FOUND, $text);
            if next.is_null() {
                errno::set(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the C library's function of that name has this type.
            let next = unsafe {
                transmute::<*mut c_void, extern "C" fn($($parameter: uid_t),*) -> c_int>(next)
            };
            becoming($user, || next($($parameter),*))
        }
    )*};
}

users! {
    setuid(user) -> user, c"setuid";
    seteuid(effective) -> effective, c"seteuid";
    setreuid(real, effective) -> effective, c"setreuid";
    setresuid(real, effective, saved) -> effective, c"setresuid";
}
