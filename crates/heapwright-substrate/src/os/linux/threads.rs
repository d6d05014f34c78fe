//! Threads: actions at a thread's end and around a fork.

use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::super::{EXITS, Exit};
use super::keeping_errno;

/// For each kind of exit: `pthread_key_t + 1`, or 0 before [`on_thread_exit`].
static EXIT_KEYS: [AtomicU32; EXITS] = [const { AtomicU32::new(0) }; EXITS];

/// Sets the function that runs at the end of a thread that called [`watch_this_thread`]. A second
/// call has no effect. False: the system has no key left. (Without [`Exit::Cache`], caches of ended
/// threads are not reused.)
///
/// This uses a pthread key, because a `thread_local!` with a destructor allocates.
pub fn on_thread_exit(exit: Exit, run: unsafe extern "C" fn(*mut c_void)) -> bool {
    let mut key = 0;
    // SAFETY: `key` is a valid place for the answer; `run` accepts what `watch_this_thread` sets.
    let got = keeping_errno(|| unsafe { libc::pthread_key_create(&raw mut key, Some(run)) });
    if got != 0 {
        return false;
    }
    let place = &EXIT_KEYS[exit as usize];
    if place.compare_exchange(0, key + 1, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: created above, and no thread has a value for it.
        keeping_errno(|| unsafe { libc::pthread_key_delete(key) });
    }
    true
}

/// Makes the exit function run with `token` (not null) at this thread's end. False: it will not.
#[allow(clippy::not_unsafe_ptr_arg_deref, reason = "the pointer is handed on, and not read")]
pub fn watch_this_thread(exit: Exit, token: *mut c_void) -> bool {
    let Some(key) = EXIT_KEYS[exit as usize].load(Ordering::Acquire).checked_sub(1) else {
        return false;
    };
    // SAFETY: the key was created above and is never deleted.
    keeping_errno(|| unsafe { libc::pthread_setspecific(key, token) }) == 0
}

/// The last token of [`watch_this_thread`]; null: none.
pub fn watched(exit: Exit) -> *mut c_void {
    match EXIT_KEYS[exit as usize].load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key was created above and is never deleted.
        Some(key) => unsafe { libc::pthread_getspecific(key) },
        None => ptr::null_mut(),
    }
}

/// A number that no other thread of the process has while the calling thread lives. In a forked
/// child, the thread has the number of the thread that forked.
#[inline]
pub fn thread_token() -> usize {
    // SAFETY: no preconditions; the location is the thread's own.
    unsafe { libc::__errno_location() }.addr()
}

/// The system's number of the calling thread. In a sandbox, a thread that may not be the only one
/// gets another number.
pub fn thread_id() -> u32 {
    if super::is_filtered() {
        let alone = super::is_single_threaded();
        return if alone { super::process_id() } else { (thread_token() >> 4) as u32 | 1 << 31 };
    }
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_gettid) }) as u32
}

/// The signals of faults. If they are blocked, a fault ends the process without a message.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Names the calling thread for debuggers and process lists: up to 15 bytes.
pub fn name_thread(name: &CStr) {
    // SAFETY: the kernel copies up to 16 bytes of a string that ends before.
    keeping_errno(|| unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) });
}

/// The calling thread's thread pointer.
pub fn thread_pointer() -> usize {
    let at: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the ABI, this word contains its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) at, options(nostack, pure, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) at, options(nostack, nomem, preserves_flags));
    }
    at
}

/// The signals that a thread had blocked: see [`block_signals`].
#[derive(Clone, Copy)]
pub struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// No signals.
    pub const NONE: Self = {
        // SAFETY: a `sigset_t` is an array of integers. All zeros are the empty set.
        Self(unsafe { MaybeUninit::zeroed().assume_init() })
    };
}

/// Blocks all signals in the calling thread but those of faults, until [`restore_signals`]. (Older
/// glibcs have `pthread_sigmask` only in libpthread. `sigprocmask` changes the calling thread's
/// signals in every C library.)
pub fn block_signals() -> SignalMask {
    let mut all = SignalMask::NONE.0;
    let mut before = SignalMask::NONE;
    keeping_errno(|| {
        // SAFETY: a valid place for the set.
        unsafe { libc::sigfillset(&raw mut all) };
        for fault in FAULTS {
            // SAFETY: filled above.
            unsafe { libc::sigdelset(&raw mut all, fault) };
        }
        // SAFETY: both are valid places.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before.0) }
    });
    before
}

/// Restores the blocked signals from before [`block_signals`].
pub fn restore_signals(before: SignalMask) {
    keeping_errno(|| {
        // SAFETY: a valid set.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before.0, ptr::null_mut()) }
    });
}

/// Starts a detached thread, in which all signals but those of faults are blocked. False: refused.
#[allow(clippy::not_unsafe_ptr_arg_deref, reason = "the pointer is handed on, and not read")]
pub fn spawn(run: extern "C" fn(*mut c_void) -> *mut c_void, with: *mut c_void) -> bool {
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    keeping_errno(|| {
        let before = block_signals();
        // SAFETY: by its type, `run` takes any pointer; `thread` is a valid place for the answer.
        let made = unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), run, with) };
        restore_signals(before);
        if made != 0 {
            return false;
        }
        // SAFETY: the call has made the thread.
        let thread = unsafe { thread.assume_init() };
        // SAFETY: the thread is not detached yet, and its handle is not used afterwards.
        unsafe { libc::pthread_detach(thread) };
        true
    })
}

/// Sets the functions that run around every fork.
pub fn around_fork(
    before: unsafe extern "C" fn(),
    in_parent: unsafe extern "C" fn(),
    in_child: unsafe extern "C" fn(),
) {
    keeping_errno(|| {
        // SAFETY: the three functions live as long as the process.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) }
    });
}
