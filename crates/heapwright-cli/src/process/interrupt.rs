//! Interrupts: a signal to stop is noted, and does not end the command at once.
//!
//! An interrupted race has results worth printing. So the first SIGINT, SIGTERM or SIGHUP is only
//! noted; the second of a kind ends the command as usual.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// The signal that came; 0: none.
static CAME: AtomicI32 = AtomicI32::new(0);

pub(crate) fn notice() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeroed is a valid sigaction.
        let action = unsafe { action.assume_init_mut() };
        action.sa_sigaction = on_signal as *const () as usize;
        // No SA_RESTART: the signal must end a wait.
        action.sa_flags = libc::SA_RESETHAND;
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the handler is async-signal-safe, the action is complete, and the old action's
        // place is writable.
        unsafe { libc::sigaction(signal, action, before.as_mut_ptr()) };
        // SAFETY: zeroed is valid, and the call has filled it since.
        let before = unsafe { before.assume_init() };
        if before.sa_sigaction == libc::SIG_IGN {
            // A signal ignored under nohup stays ignored.
            // SAFETY: the action is the kernel's own.
            unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) };
        }
    }
}

pub(crate) fn came() -> Option<i32> {
    Some(CAME.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

extern "C" fn on_signal(signal: i32) {
    CAME.store(signal, Ordering::Relaxed);
}
