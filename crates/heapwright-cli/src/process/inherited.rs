//! Signals that were ignored when this command was started.
//!
//! An ignored signal stays ignored across `exec`; `nohup` lives from that. Two
//! of them would not reach the program as they reached us: Rust's runtime
//! ignores SIGPIPE before `main` and its `Command` sets it back to the default,
//! and [`super::watch`] needs SIGCHLD at its default. So what we were started
//! with is remembered, SIGPIPE from before `main`, and set again in the child.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGPIPE was ignored before Rust's runtime touched it.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Run by the loader before `main`.
#[used]
// SAFETY: the loader calls every function in this section once, with the
// arguments of main, which a function without parameters may ignore.
#[unsafe(link_section = ".init_array")]
static REMEMBER_SIGPIPE: extern "C" fn() = remember_sigpipe;

extern "C" fn remember_sigpipe() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Whether a signal's disposition is to be ignored.
fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given, and the old one's place is writable.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    if result != 0 {
        return false;
    }
    // SAFETY: zeroed is a valid sigaction, and the call has filled it since.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

/// The signals to ignore again in the child.
#[derive(Clone, Copy)]
pub(super) struct Ignored {
    pipe: bool,
    child: bool,
}

impl Ignored {
    /// What this command was started with.
    pub(super) fn now() -> Self {
        Self { pipe: PIPE_WAS_IGNORED.load(Ordering::Relaxed), child: is_ignored(libc::SIGCHLD) }
    }

    /// Sets it again, between fork and exec.
    #[expect(clippy::unnecessary_wraps, reason = "the shape pre_exec wants")]
    pub(super) fn restore(self) -> io::Result<()> {
        for (signal, ignored) in [(libc::SIGPIPE, self.pipe), (libc::SIGCHLD, self.child)] {
            if ignored {
                // SAFETY: SIG_IGN is a valid disposition of both signals.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        }
        Ok(())
    }
}
