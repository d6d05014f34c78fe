//! Signals that were ignored, and standard streams that were closed, when this command was started.
//!
//! An ignored signal stays ignored across `exec`; `nohup` depends on that. Three signals would not
//! reach the program as they reached this command. Rust's runtime ignores SIGPIPE before `main`,
//! and its `Command` restores the default. This command ignores SIGXFSZ, so that a file at its size
//! limit causes an error, not a signal. Both dispositions are recorded before `main`. SIGCHLD's is
//! recorded before [`super::watch`] sets the default. The child restores all three.
//!
//! Rust's runtime opens /dev/null in place of a closed standard stream. This command does so first,
//! with a descriptor that `exec` closes again.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the signal was ignored before Rust's runtime (SIGPIPE) or this command (SIGXFSZ) did so.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);
static SIZE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// The address of [`remember`], which the loader calls before `main`.
#[used]
// SAFETY: the loader calls every function in this section once with the arguments of main. A
// function without parameters may ignore them.
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    SIZE_WAS_IGNORED.store(is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
    super::signals::ignore(libc::SIGXFSZ);
    open_streams();
}

/// Opens /dev/null in place of each closed standard stream, until `exec`.
fn open_streams() {
    loop {
        // SAFETY: the name is a string. The call returns the lowest free descriptor.
        let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if fd > libc::STDERR_FILENO {
            // SAFETY: the descriptor is new, and nothing else owns it.
            unsafe { libc::close(fd) };
        }
        if !(0..=libc::STDERR_FILENO).contains(&fd) {
            return;
        }
    }
}

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

#[derive(Clone, Copy)]
pub(super) struct Ignored {
    pipe: bool,
    size: bool,
    child: bool,
}

impl Ignored {
    /// Returns which signals were ignored at the start. Call this before SIGCHLD is changed.
    pub(super) fn now() -> Self {
        Self {
            pipe: PIPE_WAS_IGNORED.load(Ordering::Relaxed),
            size: SIZE_WAS_IGNORED.load(Ordering::Relaxed),
            child: is_ignored(libc::SIGCHLD),
        }
    }

    /// Sets the signals as this command found them, between fork and exec.
    #[expect(clippy::unnecessary_wraps, reason = "the shape pre_exec wants")]
    pub(super) fn restore(self) -> io::Result<()> {
        let size = (libc::SIGXFSZ, self.size);
        for (signal, ignored) in [(libc::SIGPIPE, self.pipe), size, (libc::SIGCHLD, self.child)] {
            if ignored {
                super::signals::ignore(signal);
            } else if signal == libc::SIGXFSZ {
                super::signals::set_default(signal);
            }
        }
        Ok(())
    }
}
